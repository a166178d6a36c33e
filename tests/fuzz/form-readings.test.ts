// Forms that are written anew are read by other programs as they are understood here: what Go, Werkzeug and busboy read is recorded.
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bodyOf } from "../../src/base/bytes/body-source.ts";
import { readForm } from "../../src/multipart/read-form.ts";
import { SpoolSpace } from "../../src/multipart/spool-space.ts";

interface Reading {
  /** The boundary of the client's form, whose bytes are characters here. */
  boundary: string;
  form: string;
  /** What all three read in the form that was written anew of it; contents in base64. */
  read: { name: string; isFile: boolean; content: string }[];
}

const file = join(import.meta.dir, "..", "fixtures", "forms", "readings.json");
const readings = JSON.parse(readFileSync(file, "utf8")) as Reading[];

// hardening: F38
test("reads every fuzzed form like Go, Werkzeug and busboy", async () => {
  const home = mkdtempSync(join(tmpdir(), "headrace-readings-"));
  const space = new SpoolSpace(home, () => 1e9);
  try {
    expect(readings.length).toBeGreaterThan(20);
    for (const { boundary, form, read } of readings) {
      const bytes = Buffer.from(form, "latin1");
      const options = { space, accountId: "a", memoryBytes: 1e6, boundary, declaredBytes: bytes.length };
      const kept = await readForm(bodyOf(bytes), { ...options, hold: () => undefined }, (error) => error);
      const reported = (isFile: boolean) => read.filter((part) => part.isFile === isFile);
      const texts = reported(false).map(({ name, content }) => ({
        name,
        value: Buffer.from(content, "base64").toString(),
      }));
      expect([form, kept.texts]).toEqual([form, texts]);
      const files = reported(true).map(({ name, content }) => [name, Buffer.from(content, "base64").length]);
      expect([form, kept.files.map((one) => [one.name, one.bytes])]).toEqual([form, files as never]);
      kept.release();
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
