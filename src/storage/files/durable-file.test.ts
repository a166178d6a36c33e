// A durable file has the old or the new content, and only its owner may read it. tests/faults/power-cut.test.ts checks
// that it is synced.
import { expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFile, makeDirectory, replaceFile } from "./durable-file.ts";

function inDirectory(work: (directory: string) => void): void {
  const directory = mkdtempSync(join(tmpdir(), "headrace-durable-"));
  try {
    work(directory);
  } finally {
    chmodSync(directory, 0o700);
    rmSync(directory, { recursive: true });
  }
}

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

test("restricts a replaced file to its owner, whatever the modes of the old file and a leftover draft", () => {
  inDirectory((directory) => {
    const path = join(directory, "secret");
    writeFileSync(path, "old", { mode: 0o644 });
    writeFileSync(`${path}.${process.pid}`, "of a process that died", { mode: 0o666 });
    replaceFile(path, "new");
    expect(readFileSync(path, "utf8")).toBe("new");
    expect(modeOf(path)).toBe("600");
    expect(readdirSync(directory)).toEqual(["secret"]);
  });
});

test("keeps a file that cannot be replaced, and leaves no draft", () => {
  inDirectory((directory) => {
    const path = join(directory, "secret");
    makeDirectory(join(path, "in the way"));
    expect(() => replaceFile(path, "new")).toThrow();
    expect(readdirSync(directory)).toEqual(["secret"]);
  });
});

test("does not overwrite an existing file when creating one, and reports that", () => {
  inDirectory((directory) => {
    const path = join(directory, "secret");
    expect(createFile(path, "first")).toBe(true);
    expect(createFile(path, "second")).toBe(false);
    expect(readFileSync(path, "utf8")).toBe("first");
    expect(modeOf(path)).toBe("600");
    expect(readdirSync(directory)).toEqual(["secret"]);
  });
});

test("creates missing directories for the owner alone, and keeps the mode of existing ones", () => {
  inDirectory((directory) => {
    chmodSync(directory, 0o755);
    makeDirectory(join(directory, "a", "b"));
    makeDirectory(directory);
    expect([directory, join(directory, "a"), join(directory, "a", "b")].map(modeOf)).toEqual(["755", "700", "700"]);
  });
});
