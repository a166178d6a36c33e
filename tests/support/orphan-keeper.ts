// A program that orphans below it fall to, as to the first process of a container. It stops commands that leave orphans, and
// writes how many of them stay.
import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { adoptOrphans } from "../../src/installation/adopt-orphans.ts";
import { GuardedProcess } from "../../src/processes/guarded-process.ts";
import { markOf } from "../../src/processes/orphans.ts";

adoptOrphans();
// The shell ends at once by the signal, and `cat` has no parent any more that waits for it.
const command = ["sh", "-c", "cat & cat; wait"];
for (let nth = 0; nth < 3; nth++) {
  const mark = markOf(tmpdir(), crypto.randomUUID());
  const env = { PATH: process.env["PATH"] ?? "" };
  const guarded = new GuardedProcess({
    command,
    directory: undefined,
    env,
    mark,
    stopMs: 2_000,
    talks: true,
    reaps: true,
  });
  await guarded.write("begun\n");
  await guarded.stdout.getReader().read();
  await guarded.stop();
}
const statusOf = (pid: string) => {
  try {
    return readFileSync(`/proc/${pid}/status`, "latin1");
  } catch {
    return "";
  }
};
const children = readdirSync("/proc")
  .filter((name) => /^\d+$/.test(name))
  .filter((pid) => statusOf(pid).includes(`\nPPid:\t${process.pid}\n`));
process.stdout.write(`${children.length}\n`);
