// What of a directory would survive a power cut, by the system calls of a program that ran under strace.
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

const traced =
  "openat,write,pwrite64,writev,pwritev,ftruncate,fsync,fdatasync,rename,renameat,renameat2,link,linkat,mkdir,mkdirat,unlink,unlinkat";

/** Words before a command, which stays the child that is waited for: strace writes a file for each of its threads, `<prefix>.<thread>`. */
export function tracing(prefix: string): string[] {
  return ["strace", "-D", "-ff", "-ttt", "-y", "-s", "0", "--seccomp-bpf", "-e", `trace=${traced}`, "-o", prefix];
}

interface TracedCall {
  /** Unix seconds at which it began. */
  time: number;
  call: string;
  /** Its arguments. */
  rest: string;
}

interface TracedFile {
  /** Whether something was written since it was last synced. */
  dirty: boolean;
  /** Whether its directory was synced since it has this name. */
  named: boolean;
}

/** Why each of the paths below `root` that were made or written would be lost or torn; empty where nothing would. */
export function lostByPowerCut(prefix: string, root: string, cwd: string): Map<string, string> {
  const files = new Map<string, TracedFile>();
  const of = (path: string) => files.get(path) ?? { dirty: false, named: true };
  const change = (path: string, change: Partial<TracedFile>) => files.set(path, { ...of(path), ...change });
  const named = (path: string) => resolve(cwd, path);
  for (const { call, rest } of calls(prefix)) {
    const opened = /^(?:AT_FDCWD<[^>]*>, |AT_FDCWD, )?"([^"]*)", ([A-Z_|]+)/.exec(rest);
    const descriptor = /^\d+<([^>]*)>/.exec(rest)?.[1];
    if (call === "openat" && opened?.[2]?.includes("O_CREAT")) {
      const path = named(opened[1] ?? "");
      if (!files.has(path)) change(path, { named: false });
    } else if (call.startsWith("mkdir")) {
      const path = named(/"([^"]*)"/.exec(rest)?.[1] ?? "");
      change(path, { named: false });
    } else if (call.startsWith("rename") || call.startsWith("link")) {
      const [from = "", to = ""] = [...rest.matchAll(/"([^"]*)"/g)].map(([, path = ""]) => named(path));
      change(to, { ...of(from), named: false });
      if (call.startsWith("rename")) files.delete(from);
    } else if (call.includes("sync") && descriptor !== undefined) {
      if (files.has(descriptor)) change(descriptor, { dirty: false });
      for (const path of files.keys()) if (dirname(path) === descriptor) change(path, { named: true });
    } else if (descriptor?.startsWith("/") && files.has(descriptor)) {
      change(descriptor, { dirty: true });
    }
  }
  const lost = new Map<string, string>();
  for (const [path, { dirty, named }] of files) {
    if (path !== root && !path.startsWith(`${root}/`)) continue;
    if (!named) lost.set(path, "its name is not on the disk");
    else if (dirty) lost.set(path, "its content is not on the disk");
  }
  return lost;
}

/** Which of the files that `isMeant` names were deleted while `path` had content that was not on the disk; in order, with `false` for those deleted safely. */
export function deletedBeforeSync(prefix: string, path: string, isMeant: (deleted: string) => boolean): boolean[] {
  let dirty = false;
  const deleted: boolean[] = [];
  for (const { call, rest } of calls(prefix)) {
    const descriptor = /^\d+<([^>]*)>/.exec(rest)?.[1];
    if (descriptor === path) dirty = !call.includes("sync");
    const gone = call.startsWith("unlink") ? /"([^"]*)"/.exec(rest)?.[1] : undefined;
    if (gone !== undefined && isMeant(gone)) deleted.push(dirty);
  }
  return deleted;
}

/** How many calls of one thread succeeded; `file` is what strace wrote of it. */
export function countCalls(file: string, counts: (call: string) => boolean): number {
  return callsOf(file).filter(({ call }) => counts(call)).length;
}

/** Those that succeeded, of all threads, in the order in which they began. */
function calls(prefix: string): TracedCall[] {
  return readdirSync(dirname(prefix))
    .filter((name) => name.startsWith(`${basename(prefix)}.`))
    .flatMap((name) => callsOf(join(dirname(prefix), name)))
    .sort((a, b) => a.time - b.time);
}

function callsOf(file: string): TracedCall[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line) => {
      const [, time = "", call = "", rest = ""] = /^(\d+\.\d+) (\w+)\((.*)\) += \d/.exec(line) ?? [];
      return call === "" ? [] : [{ time: Number(time), call, rest }];
    });
}
