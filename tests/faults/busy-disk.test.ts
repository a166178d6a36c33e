// On a busy disk each wait for it takes long: the thread that serves requests must have few of them, as strace counts them.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countCalls, tracing } from "../support/traced-disk.ts";

// hardening: F24
test("blocks the request thread at most ten times for the disk while 20,000 old records are deleted", async () => {
  const directory = mkdtempSync(join(tmpdir(), "headrace-busy-disk-"));
  try {
    const prefix = join(directory, "trace");
    const fixture = join(import.meta.dir, "..", "fixtures", "purge-records.ts");
    const command = [process.execPath, fixture, join(directory, "headrace.db"), "20000"];
    const child = Bun.spawn([...tracing(prefix), ...command], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
    expect(JSON.parse(await new Response(child.stdout).text())).toEqual({ deleted: 20_000 });
    expect(await child.exited).toBe(0);
    const waits = countCalls(`${prefix}.${child.pid}`, (call) => call.endsWith("sync"));
    expect(waits).toBeGreaterThan(0);
    expect(waits).toBeLessThanOrEqual(10);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
