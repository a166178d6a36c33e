// The files of a database are in place only if their paths still lead to the opened files.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseFile } from "./database-file.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "place-"));
  mkdirSync(join(folder, "data"));
  writeFileSync(join(folder, "data", "headrace.db"), "");
});
afterEach(() => rmSync(folder, { recursive: true }));

test.each<[string, () => void]>([
  ["was deleted", () => rmSync(join(folder, "data", "headrace.db"))],
  ["moved with its directory", () => renameSync(join(folder, "data"), join(folder, "moved"))],
  [
    "moved with its directory, which a file replaced",
    () => {
      renameSync(join(folder, "data"), join(folder, "moved"));
      writeFileSync(join(folder, "data"), "");
    },
  ],
])("reports a database file that %s as displaced", (_, displace) => {
  const file = join(folder, "data", "headrace.db");
  const place = new DatabaseFile(file);
  expect(place.displaced).toBeUndefined();
  displace();
  expect(place.displaced).toBe(file);
  expect(() => place.require()).toThrow("moved, deleted or replaced");
});
