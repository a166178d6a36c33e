// The real program as a user starts it: `node bin/headrace.mjs …` in a directory of its own, its output at hand.
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Reachable } from "./clients.ts";
import { until } from "./headrace.ts";

const root = join(import.meta.dir, "..", "..");
const launcher = join(root, "bin", "headrace.mjs");
const startDeadlineMs = 30_000;
const exitDeadlineMs = 15_000;

export interface Program {
  /** The launcher's process id. */
  pid: number;
  stdout(): string;
  stderr(): string;
  /** Waits for standard output to match; fails with all output when the process ends before. */
  says(pattern: RegExp, deadlineMs?: number): Promise<RegExpExecArray>;
  signal(name: NodeJS.Signals): void;
  /** Waits for the end; rejects when it does not come. */
  exitCode(deadlineMs?: number): Promise<number>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface Workspace {
  /** Working directory; `headrace.yaml` in it is found by the program. */
  directory: string;
  /** With a blank in it, as on many a desktop. */
  dataDir: string;
  [Symbol.asyncDispose](): Promise<void>;
}

export function makeWorkspace(): Workspace {
  const directory = mkdtempSync(join(tmpdir(), "headrace-program-"));
  const dataDir = join(directory, "data of a user");
  mkdirSync(join(directory, "home"));
  return {
    directory,
    dataDir,
    async [Symbol.asyncDispose]() {
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** `headrace <args>` in the workspace; `serve` gets `--port 0`, the data directory, and no look at this machine's own model servers. `within`: words before the command, which run it somewhere else on this machine. */
export function startProgram(
  workspace: Workspace,
  args: readonly string[],
  env: Record<string, string> = {},
  within: readonly string[] = [],
): Program {
  requireSetUp();
  const serving = args[0] === "serve";
  const given = (flag: string) => args.includes(flag);
  const own = [
    ...(given("--port") ? [] : ["--port", "0"]),
    ...(given("--data-dir") ? [] : ["--data-dir", workspace.dataDir]),
    "--no-discover-local",
  ];
  const child = Bun.spawn([...within, "node", launcher, ...args, ...(serving ? own : [])], {
    cwd: workspace.directory,
    env: { PATH: process.env["PATH"] ?? "", HOME: join(workspace.directory, "home"), ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const output = { stdout: "", stderr: "" };
  const reading = Promise.all([
    collect(child.stdout, (text) => {
      output.stdout += text;
    }),
    collect(child.stderr, (text) => {
      output.stderr += text;
    }),
  ]);
  const everything = () => `${output.stdout}\n${output.stderr}`;
  const exitCode = async (deadlineMs = exitDeadlineMs) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`Still running after ${deadlineMs} ms:\n${everything()}`)), deadlineMs);
    });
    try {
      const code = await Promise.race([child.exited, late]);
      await Promise.race([reading, late]);
      return code;
    } finally {
      clearTimeout(timer);
    }
  };
  return {
    pid: child.pid,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    async says(pattern, deadlineMs = startDeadlineMs) {
      return until(
        () => {
          const match = pattern.exec(output.stdout);
          if (!match && child.exitCode !== null) throw new Error(`Ended before it said ${pattern}:\n${everything()}`);
          return match;
        },
        `standard output matches ${pattern}`,
        deadlineMs,
      );
    },
    signal: (name) => child.kill(name),
    exitCode,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null) return;
      child.kill("SIGTERM");
      // A second signal, after a pause, means "now": the launcher must not die alone and leave the server behind.
      const now = setInterval(() => child.kill("SIGTERM"), 2_000);
      await child.exited;
      clearInterval(now);
    },
  };
}

export interface StartedServer extends Program, Reachable {
  baseUrl: string;
  /** What the terminal offers to paste; undefined in JSON format. */
  curl: string;
}

/** Starts `headrace serve` with text output and waits for its banner. The key comes from `credentials.json`. */
export async function startServer(
  workspace: Workspace,
  args: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<StartedServer> {
  const program = startProgram(workspace, ["serve", ...args], env);
  try {
    const [, baseUrl = ""] = await program.says(/Base URL {3}(\S+)/);
    const [, curl = ""] = await program.says(/^(curl [\s\S]*?)\n\n/m);
    const credentials = await Bun.file(join(workspace.dataDir, "credentials.json")).json();
    return { ...program, baseUrl, url: baseUrl.replace(/\/v1$/, ""), key: String(credentials.api_key), curl };
  } catch (error) {
    await program[Symbol.asyncDispose]();
    throw error;
  }
}

async function collect(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const bytes of stream) take(decoder.decode(bytes, { stream: true }));
}

/** The launcher installs packages when they are not set up: not under the feet of tests that run. */
function requireSetUp(): void {
  const lockFile = join(root, "package-lock.json");
  if (existsSync(lockFile) && !existsSync(join(root, "node_modules", ".headrace-setup"))) {
    throw new Error("The packages are not set up. Run these tests with `npm test`, which does that first.");
  }
}
