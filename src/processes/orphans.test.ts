import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endMarked, markedProcesses, markOf, markVariable } from "./orphans.ts";

/** Megabytes take the system a while to free. */
const held = 150 * 2 ** 20;
const program = `const held = Buffer.alloc(${held}, 1); console.log("held"); setInterval(() => held.length, 1e9);`;

/** Whether it still has memory or files: what has ended and waits for its parent has none. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

async function startHeavy(mark: string): Promise<number> {
  const env = { [markVariable]: mark };
  const child = Bun.spawn([process.execPath, "-e", program], { env, stdout: "pipe", stderr: "ignore" });
  await child.stdout.getReader().read();
  return child.pid;
}

test("ends marked processes and waits until their memory is free, also after another kill", async () => {
  const mark = markOf("/nowhere", crypto.randomUUID());
  const first = await startHeavy(mark);
  expect(await endMarked(mark)).toBe(1);
  expect(isAlive(first)).toBe(false);
  const second = await startHeavy(mark);
  const known = markedProcesses(mark);
  process.kill(second, "SIGKILL");
  await Bun.sleep(30);
  await endMarked(mark, known);
  expect(isAlive(second)).toBe(false);
});

test("spares processes of another data directory, even with the same path in another container", async () => {
  const folder = mkdtempSync(join(tmpdir(), "headrace-strays-"));
  const dataDir = join(folder, "data");
  mkdirSync(dataDir);
  const env = { [markVariable]: markOf(dataDir, "1") };
  const other = Bun.spawn(["sleep", "60"], { env });
  try {
    expect(markedProcesses(markOf(dataDir, ""))).toEqual([other.pid]);
    renameSync(dataDir, `${dataDir}-of-another`);
    mkdirSync(dataDir);
    expect(await endMarked(markOf(dataDir, ""))).toBe(0);
    expect(isAlive(other.pid)).toBe(true);
  } finally {
    other.kill("SIGKILL");
    rmSync(folder, { recursive: true });
  }
});
