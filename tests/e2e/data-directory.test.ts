// A data directory that was there before, and that others may read: what is kept in it is for its owner alone.
import { expect, test } from "bun:test";
import { chmodSync, cpSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startHeadrace } from "../support/headrace.ts";

/** By name, of everything in the directory. */
function modesOf(directory: string): Record<string, string> {
  const modeOf = (name: string) => (statSync(join(directory, name)).mode & 0o777).toString(8);
  return Object.fromEntries(readdirSync(directory).map((name) => [name, modeOf(name)]));
}

test.each([
  ["is empty", []],
  ["has files of a server that left them open", ["headrace.db", "server.lock", ".server.lock"]],
])("makes a data directory of mode 0755 that %s private under umask 022", async (_state, files) => {
  const dataDir = mkdtempSync(join(tmpdir(), "headrace-open-"));
  const umask = process.umask(0o022);
  try {
    chmodSync(dataDir, 0o755);
    for (const name of files) writeFileSync(join(dataDir, name), "", { mode: 0o644 });
    await using server = await startHeadrace({ dataDir });
    expect((await server.request("/v1/models")).status).toBe(200);
    const modes = modesOf(dataDir);
    expect(modes).toMatchObject({ "headrace.db": "600", "headrace.db-wal": "600", "headrace.db-shm": "600" });
    expect(modes).toMatchObject({ "server.lock": "600", ".server.lock": "600", spool: "700" });
    expect(Object.entries(modes).filter(([, mode]) => !/^[67]00$/.test(mode))).toEqual([]);
  } finally {
    process.umask(umask);
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test("closes files that a killed server left readable by others", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "headrace-open-"));
  try {
    await using killed = await startHeadrace();
    for (const name of ["headrace.db", "headrace.db-wal", "headrace.db-shm", "secret"]) {
      cpSync(join(killed.dataDir, name), join(dataDir, name));
      chmodSync(join(dataDir, name), name === "secret" ? 0o600 : 0o644);
    }
    await using _server = await startHeadrace({ dataDir });
    expect(modesOf(dataDir)).toMatchObject({
      "headrace.db": "600",
      "headrace.db-wal": "600",
      "headrace.db-shm": "600",
    });
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});
