import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DiskObjects } from "./disk-objects.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-objects-"));
const content = Buffer.from(Array.from({ length: 200_000 }, (_, i) => i % 251));
const objects = new DiskObjects(directory);

beforeAll(async () => {
  await objects.open(Date.now());
  const writer = await objects.create("file_1");
  await writer.write(content);
  await writer.finish();
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

test.each([
  [0, 200_000],
  [10, 20],
  [65_530, 131_080],
  [199_999, 200_000],
  [7, 7],
])("reads the bytes from %i to %i in pieces of 64 KiB at most", async (start, end) => {
  const pieces = await Array.fromAsync(objects.read("file_1", { start, end }));
  expect(Buffer.concat(pieces).equals(content.subarray(start, end))).toBe(true);
  expect(Math.max(0, ...pieces.map(({ length }) => length))).toBeLessThanOrEqual(65_536);
});

test("refuses to read beyond the end of a file", async () => {
  const read = Array.fromAsync(objects.read("file_1", { start: 199_990, end: 200_010 }));
  await expect(read).rejects.toMatchObject({ code: "service_unavailable" });
});
