import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openExistingDatabase } from "./existing-database.ts";

const descriptors = "/proc/self/fd";

/** Returns the files that this process has open. */
function openFiles(): string[] {
  return readdirSync(descriptors).flatMap((name) => {
    try {
      return [readlinkSync(join(descriptors, name))];
    } catch {
      return [];
    }
  });
}

test.skipIf(!existsSync(descriptors))("closes a file that is refused as no database", async () => {
  const directory = mkdtempSync(join(tmpdir(), "headrace-existing-"));
  const file = join(directory, "headrace.db");
  writeFileSync(file, "This is no database, however long it is read. ".repeat(100));
  await expect(openExistingDatabase(file)).rejects.toThrow(`The database ${file} cannot be read`);
  expect(openFiles()).not.toContain(file);
  rmSync(directory, { recursive: true });
});
