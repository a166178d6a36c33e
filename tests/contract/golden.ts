// Golden files: what a client sees on the wire, kept as text. UPDATE_GOLDEN=1 writes them anew; read the diff then.
import { expect } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const folder = join(import.meta.dir, "..", "fixtures", "golden");
const updating = process.env["UPDATE_GOLDEN"] === "1";

/** Fails unless `text` is what `tests/fixtures/golden/<name>` holds. */
export function expectGolden(name: string, text: string): void {
  const file = join(folder, name);
  if (updating) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return;
  }
  if (!existsSync(file)) {
    throw new Error(`There is no golden file ${name}. If it is meant to be new, run the test with UPDATE_GOLDEN=1.`);
  }
  expect(text).toBe(readFileSync(file, "utf8"));
}

/** Replaces what differs from run to run: request ids, the current time, durations. */
export function withoutVolatileParts(text: string): string {
  const now = Date.now() / 1000;
  return text
    .replace(/req_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "req_<id>")
    .replace(/\b(chatcmpl|cmpl|embd)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "$1-<id>")
    .replace(/"created":(\d+)/g, (whole, seconds: string) =>
      Math.abs(Number(seconds) - now) < 300 ? '"created":<now>' : whole,
    )
    .replace(/(http:\/\/127\.0\.0\.1):\d+(?=\/v1|\/\.well-known)/g, "$1:<port>")
    .replace(/^openai-processing-ms: \d+$/gm, "openai-processing-ms: <ms>")
    .replace(/^date: .*$/gm, "date: <date>");
}
