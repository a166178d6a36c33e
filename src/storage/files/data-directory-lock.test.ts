import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DataDirectoryInUse, lockDataDirectory } from "./data-directory-lock.ts";
import { lockNames, lockState } from "./lock-holder.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-lock-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test("refuses a second server on a data directory until the first one releases it", () => {
  const release = lockDataDirectory(directory);
  expect(() => lockDataDirectory(directory)).toThrow(DataDirectoryInUse);
  release();
  lockDataDirectory(directory)();
});

test.each(lockNames)("refuses a second server although %s was deleted under the first one", (name) => {
  const release = lockDataDirectory(directory);
  rmSync(join(directory, name));
  expect(() => lockDataDirectory(directory)).toThrow(DataDirectoryInUse);
  expect(lockState(directory).held).toBe(true);
  release();
  lockDataDirectory(directory)();
  expect(lockState(directory)).toEqual({ held: false });
});

test("frees the lock of a killed process at once", async () => {
  // The script keeps a reference to the lock: otherwise the garbage collector would close the lock's database and
  // release the lock.
  const script = `
    const { lockDataDirectory } = await import(${JSON.stringify(join(import.meta.dir, "data-directory-lock.ts"))});
    globalThis.release = lockDataDirectory(${JSON.stringify(directory)});
    console.log("locked");
    setInterval(() => {}, 1000);`;
  const holder = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "ignore" });
  try {
    await holder.stdout.getReader().read();
    expect(() => lockDataDirectory(directory)).toThrow(DataDirectoryInUse);
  } finally {
    holder.kill("SIGKILL");
    await holder.exited;
  }
  lockDataDirectory(directory)();
});
