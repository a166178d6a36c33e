// Reads facts about a process from the operating system: about the running server, or else about this process.
import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";

export interface ProcessFacts {
  pid: number;
  /** The environment variables. Undefined if they may not be read, for example for another user's process. */
  environment: Readonly<Record<string, string>> | undefined;
  /** The command line, and the directory in which the process was started. Undefined if these may not be read. */
  args: readonly string[] | undefined;
  directory: string | undefined;
  user: number | undefined;
  /** File descriptors in use. */
  openFiles: number | undefined;
  openFilesLimit: number | undefined;
  memoryBytes: number | undefined;
  memoryLimitBytes: number | undefined;
  /** The number of processors that the cgroup allows. May be a fraction. */
  processors: number | undefined;
}

/** Returns the facts of a process. Never throws: unreadable facts are undefined. */
export function processFacts(pid: number): ProcessFacts {
  const directory = `/proc/${pid}`;
  const status = textOf(join(directory, "status")) ?? "";
  const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(status)?.[1];
  const group = cgroupOf(textOf(join(directory, "cgroup")) ?? "");
  return {
    pid,
    environment: environmentOf(textOf(join(directory, "environ"))),
    args: textOf(join(directory, "cmdline"))?.split("\0"),
    directory: attempt(() => readlinkSync(join(directory, "cwd"))),
    user: attempt(() => statSync(directory).uid),
    openFiles: attempt(() => readdirSync(join(directory, "fd")).length),
    openFilesLimit: limitOf(textOf(join(directory, "limits")) ?? ""),
    memoryBytes: kilobytes === undefined ? undefined : Number(kilobytes) * 1024,
    memoryLimitBytes: memoryLimit(group),
    processors: processorLimit(group),
  };
}

/** Returns the soft limit of open files; /proc/PID/limits lists the soft limit before the hard one. */
function limitOf(limits: string): number | undefined {
  const soft = /^Max open files\s+(\S+)/m.exec(limits)?.[1];
  if (soft === undefined) return undefined;
  return soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft);
}

function environmentOf(text: string | undefined): Record<string, string> | undefined {
  if (text === undefined) return undefined;
  const pairs = text.split("\0").filter((pair) => pair.includes("="));
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
}

interface ControlGroups {
  /** The process's path in the single hierarchy of cgroup version 2. */
  unified: string | undefined;
  /** Returns the process's path in a controller's hierarchy of cgroup version 1. */
  of(controller: string): string | undefined;
}

/** cgroups(7): a line is `0::/path` in version 2, and `4:memory:/path` in version 1. */
function cgroupOf(text: string): ControlGroups {
  const lines = text.split("\n").map((line) => line.split(":"));
  return {
    unified: lines.find(([id, names]) => id === "0" && names === "")?.[2],
    of: (controller) => lines.find(([, names = ""]) => names.split(",").includes(controller))?.[2],
  };
}

const mount = "/sys/fs/cgroup";

/**
 * Returns the text of the first readable file. Inside a container, the cgroup's path on the host does not exist, but
 * the cgroup's files are in the root of the hierarchy.
 */
function firstText(paths: readonly string[]): string | undefined {
  for (const path of paths) {
    const text = textOf(path);
    if (text !== undefined) return text.trim();
  }
  return undefined;
}

function memoryLimit({ unified = "/", of }: ControlGroups): number | undefined {
  const text =
    firstText([join(mount, unified, "memory.max"), join(mount, "memory.max")]) ??
    firstText([
      join(mount, "memory", of("memory") ?? "/", "memory.limit_in_bytes"),
      join(mount, "memory/memory.limit_in_bytes"),
    ]);
  const bytes = Number(text);
  // cgroup version 1 writes "no limit" as a number beyond any memory.
  return text === undefined || text === "max" || !(bytes < 2 ** 60) ? undefined : bytes;
}

function processorLimit({ unified = "/", of }: ControlGroups): number | undefined {
  const text = firstText([join(mount, unified, "cpu.max"), join(mount, "cpu.max")]);
  const directories = [join(mount, "cpu", of("cpu") ?? "/"), join(mount, "cpu")];
  const [quota, period] = text?.split(" ") ?? [
    firstText(directories.map((path) => join(path, "cpu.cfs_quota_us"))),
    firstText(directories.map((path) => join(path, "cpu.cfs_period_us"))),
  ];
  const share = Number(quota) / Number(period);
  return quota === "max" || !(share > 0) ? undefined : share;
}

function textOf(path: string): string | undefined {
  return attempt(() => readFileSync(path, "utf8"));
}

function attempt<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
