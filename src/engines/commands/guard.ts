// The role that stands between the gateway and a command: when the gateway ends, in whichever way, so does all of the command.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { endMarked, kill, markedProcesses, markVariable } from "./strays.ts";

/** The one line that the guard reads. It is no argument, as the variables may hold secrets. */
export interface Guarded {
  command: readonly string[];
  directory: string | undefined;
  env: Readonly<Record<string, string>>;
  mark: string;
  /** Time between being asked to end and being ended. */
  stopMs: number;
}

/** Exit code of a guard whose command could not be started, as of a shell. */
const notStartedCode = 127;
/** Likewise: of one that a signal ended, the number of that on top of this. */
const signalCode = 128;

/** Half a sentence on the exit code of a guard. */
export function howItEnded(code: number): string {
  const [signal] = Object.entries(constants.signals).find(([, number]) => number === code - signalCode) ?? [];
  const hint = code === 0 ? " (it has to stay in the foreground)" : "";
  if (signal === undefined) return `the process ended with code ${code}${hint}`;
  const usual = signal === "SIGKILL" ? ", as a system does that has no memory left" : "";
  return `the process was ended by ${signal}${usual}`;
}

/**
 * Starts the command that standard input names, in a session of its own, and ends it when standard input ends. Leaves with
 * its exit code, once nothing of it is left.
 */
export async function guardProcess(): Promise<void> {
  // Who presses Ctrl-C means the gateway, which then closes standard input in its own time.
  for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => {});
  const reader = Bun.stdin.stream().getReader();
  const guarded = JSON.parse(await readLine(reader)) as Guarded;
  const [program = "", ...args] = guarded.command;
  const child = spawn(program, args, {
    cwd: guarded.directory,
    env: { ...guarded.env, [markVariable]: guarded.mark },
    detached: true,
    stdio: ["ignore", "inherit", "inherit"],
  });
  const exited = codeOf(child, guarded);
  let known: readonly number[] = [];
  const stop = () => {
    known = markedProcesses(guarded.mark);
    void end(child, exited, guarded.stopMs);
  };
  process.on("SIGTERM", stop);
  void readToEnd(reader).then(stop);
  const code = await exited;
  known = [...known, ...markedProcesses(guarded.mark)];
  signalGroup(child, "SIGKILL");
  await endMarked(guarded.mark, known);
  process.exit(code);
}

async function end(child: ChildProcess, exited: Promise<number>, stopMs: number): Promise<void> {
  signalGroup(child, "SIGTERM");
  const killer = setTimeout(() => signalGroup(child, "SIGKILL"), stopMs);
  await exited;
  clearTimeout(killer);
}

/** Windows has no process groups of that kind: there it is the process alone. */
function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  if (process.platform === "win32") child.kill(signal);
  else kill(-child.pid, signal);
}

function codeOf(child: ChildProcess, { directory }: Guarded): Promise<number> {
  return new Promise((resolve) => {
    child.on("error", (error) => {
      // The system says of both that there is no such file.
      const isAbsent = directory !== undefined && !existsSync(directory);
      const why = isAbsent ? `its directory ${directory} is not there` : error.message;
      process.stderr.write(`The command could not be started: ${why}\n`);
      resolve(notStartedCode);
    });
    child.on("exit", (code, signal) => resolve(code ?? signalCode + (signal === null ? 0 : constants.signals[signal])));
  });
}

type Reader = Pick<ReadableStreamDefaultReader<Uint8Array>, "read">;

async function readLine(reader: Reader): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  while (!text.includes("\n")) {
    const { done, value } = await reader.read();
    if (done) process.exit(1);
    text += decoder.decode(value, { stream: true });
  }
  return text;
}

async function readToEnd(reader: Reader): Promise<void> {
  for (;;) if ((await reader.read()).done) return;
}
