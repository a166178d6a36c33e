// The guard: a process between the gateway and a command. When the gateway ends, in any way, the guard ends the whole
// command.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import type { Writable } from "node:stream";
import { endMarked, kill, markedProcesses, markVariable } from "./orphans.ts";

/** The first line that the guard reads, as JSON. It is not an argument, because the variables may contain secrets. */
export interface Guarded {
  command: readonly string[];
  directory: string | undefined;
  env: Readonly<Record<string, string>>;
  mark: string;
  /** True if the command reads the input after this line. If left out, its standard input is empty. */
  talks?: boolean;
  /** Milliseconds between the request to end and the kill. */
  stopMs: number;
  /** True if the guard removes the command's ended orphans, because the first process of the system does not. */
  reaps?: boolean;
}

/** Maximum attempts to remove ended orphans, and milliseconds between two of them. */
const [maxReaps, reapMs] = [20, 5];
/** A guard's exit code if its command could not be started, as in a shell. */
const notStartedCode = 127;
/** Added to the signal's number for the exit code of a command that a signal ended. */
const signalCode = 128;

/** Returns half a sentence that explains a guard's exit code. */
export function howItEnded(code: number): string {
  const [signal] = Object.entries(constants.signals).find(([, number]) => number === code - signalCode) ?? [];
  const hint = code === 0 ? " (it has to stay in the foreground)" : "";
  if (signal === undefined) return `the process ended with code ${code}${hint}`;
  const usual = signal === "SIGKILL" ? ", as a system does that has no memory left" : "";
  return `the process was ended by ${signal}${usual}`;
}

/**
 * Starts the command that the first line of standard input names, in a new session. Ends the command when standard
 * input ends. Exits with the command's code once none of its processes is left.
 */
export async function guardProcess(): Promise<void> {
  // Ignored, because Ctrl-C is meant for the gateway, which closes standard input when it is ready.
  for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => {});
  const reader = Bun.stdin.stream().getReader();
  const { line, rest } = await readLine(reader);
  const guarded = JSON.parse(line) as Guarded;
  const reap = guarded.reaps ? await adopt() : () => true;
  const [program = "", ...args] = guarded.command;
  const child = spawn(program, args, {
    cwd: guarded.directory,
    env: { ...guarded.env, [markVariable]: guarded.mark },
    detached: true,
    stdio: [guarded.talks ? "pipe" : "ignore", "inherit", "inherit"],
  });
  const exited = codeOf(child, guarded);
  let known: readonly number[] = [];
  const stop = () => {
    known = markedProcesses(guarded.mark);
    void end(child, exited, guarded.stopMs);
  };
  process.on("SIGTERM", stop);
  void passOn(reader, rest, child.stdin).then(stop);
  const code = await exited;
  known = [...known, ...markedProcesses(guarded.mark)];
  signalGroup(child, "SIGKILL");
  await endMarked(guarded.mark, known);
  // Processes of the group that do not have the mark may take a moment to end.
  for (let tries = 0; !reap() && tries < maxReaps; tries++) await Bun.sleep(reapMs);
  process.exit(code);
}

/** Loaded only where it is needed, because each command waits for the start of its guard. */
async function adopt(): Promise<() => boolean> {
  const { adoptOrphans } = await import("../installation/adopt-orphans.ts");
  return adoptOrphans();
}

async function end(child: ChildProcess, exited: Promise<number>, stopMs: number): Promise<void> {
  signalGroup(child, "SIGTERM");
  const killer = setTimeout(() => signalGroup(child, "SIGKILL"), stopMs);
  await exited;
  clearTimeout(killer);
}

/**
 * Sends a signal to the command's process group. Windows has no such groups, so there only the process gets the signal.
 */
function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  if (process.platform === "win32") child.kill(signal);
  else kill(-child.pid, signal);
}

function codeOf(child: ChildProcess, { directory }: Guarded): Promise<number> {
  return new Promise((resolve) => {
    child.on("error", (error) => {
      // The system reports a missing working directory with the same error as a missing command.
      const isAbsent = directory !== undefined && !existsSync(directory);
      const why = isAbsent ? `its directory ${directory} is not there` : error.message;
      process.stderr.write(`The command could not be started: ${why}\n`);
      resolve(notStartedCode);
    });
    child.on("exit", (code, signal) => resolve(code ?? signalCode + (signal === null ? 0 : constants.signals[signal])));
  });
}

type Reader = Pick<ReadableStreamDefaultReader<Uint8Array>, "read">;

async function readLine(reader: Reader): Promise<{ line: string; rest: Uint8Array }> {
  let read = new Uint8Array();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) process.exit(1);
    read = Buffer.concat([read, value]);
    const end = read.indexOf(lineFeed);
    if (end >= 0) return { line: new TextDecoder().decode(read.subarray(0, end)), rest: read.subarray(end + 1) };
  }
}

const lineFeed = 10;

/** Passes standard input on to `to`, and resolves once standard input, or the gateway that writes it, has ended. */
async function passOn(reader: Reader, first: Uint8Array, to: Writable | null): Promise<void> {
  // Errors are ignored: the command may stop reading at any time.
  to?.on("error", () => {});
  for (let bytes = first; ; ) {
    if (to && bytes.byteLength > 0 && !to.write(bytes) && !(await drained(to))) return;
    const { done, value } = await reader.read();
    if (done) break;
    bytes = value;
  }
  to?.end();
}

const pollMs = 250;

/**
 * Resolves with true when more can be written, and with false if the gateway has ended meanwhile. The gateway's end is
 * polled for: while nobody reads standard input, its end is not reported.
 */
function drained(to: Writable): Promise<boolean> {
  const gateway = process.ppid;
  return new Promise((resolve) => {
    const over = (is: boolean) => {
      clearInterval(timer);
      to.off("drain", onDrain).off("close", onDrain);
      resolve(is);
    };
    const onDrain = () => over(true);
    const timer = setInterval(() => {
      if (process.ppid !== gateway) over(false);
    }, pollMs);
    to.on("drain", onDrain).on("close", onDrain);
  });
}
