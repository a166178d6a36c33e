import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startCheckpoints } from "./checkpointer.ts";
import { openDatabase } from "./database.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-checkpointer-"));
const file = join(directory, "headrace.db");

afterAll(() => rmSync(directory, { recursive: true, force: true }));

function openFiles(): number {
  let count = 0;
  for (const name of readdirSync("/proc/self/fd")) {
    try {
      if (readlinkSync(`/proc/self/fd/${name}`).startsWith(file)) count++;
    } catch {
      // The descriptor was closed after the folder was read.
    }
  }
  return count;
}

test("leaves no file open after many checkpoints", async () => {
  const db = await openDatabase(file);
  await db.unsafe("CREATE TABLE t (a INTEGER)");
  const checkpointer = await startCheckpoints(db);
  await db.unsafe("INSERT INTO t VALUES (1)");
  await checkpointer?.run();
  const before = openFiles();
  for (let i = 0; i < 10; i++) {
    await db.unsafe("INSERT INTO t VALUES (1)");
    await checkpointer?.run();
  }
  expect(openFiles()).toBe(before);
  await checkpointer?.close();
  await db.close();
});
