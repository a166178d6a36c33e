// The doctor names what a full data directory may lose.
import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removableText } from "./disk.ts";

test("names models, backups and replaced records with their sizes, and never the spool", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "headrace-disk-"));
  for (const [folder, bytes] of [
    ["spool", 9_000],
    ["models/hub", 3_000_000],
    ["replaced-1", 2_000],
  ] as const) {
    mkdirSync(join(dataDir, folder), { recursive: true });
    writeFileSync(join(dataDir, folder, "file"), Buffer.alloc(bytes));
  }
  expect(await removableText(dataDir)).toBe(
    "models has 3.00 MB: `headrace list` and `headrace rm` delete pulled models. replaced-1 has 2.00 kB: after `headrace spool drain`, delete what a restore moved aside.",
  );
  rmSync(join(dataDir, "models"), { recursive: true });
  rmSync(join(dataDir, "replaced-1"), { recursive: true });
  expect(await removableText(dataDir)).toBeUndefined();
  rmSync(dataDir, { recursive: true });
});
