// What every command is given of the world outside, so that a test can give it another.
import { createInterface } from "node:readline";
import { loadDataDir, loadPullSource, type PullSource } from "../config.ts";
import { createTerminal, type Env, type Terminal } from "./terminal.ts";

export interface CliContext {
  env: Env;
  terminal: Terminal;
  /** Called first by every command that only prints and ends; a server must outlive the reader of its output. */
  begin(): void;
  /** The data directory as `headrace serve` would choose it. Absolute. Rejects with a ConfigError. */
  dataDir(flag: string | undefined): Promise<string>;
  /** Throws a ConfigError. */
  pullSource(): PullSource;
  /** The first line of standard input, without its end; empty when there is none. */
  readLine(): Promise<string>;
}

/** 128 + SIGPIPE, as of a program that the signal ends. */
const brokenPipeCode = 141;

/** The real world, seen through the environment that config.ts hands out. */
export function createContext(env: Env): CliContext {
  return {
    env,
    begin: endWhenUnread,
    terminal: createTerminal(process.stdout, process.stderr, env),
    dataDir: (flag) => loadDataDir({ flags: { dataDir: flag }, env }),
    pullSource: () => loadPullSource(env),
    readLine: readStandardInput,
  };
}

/** Whoever read our output has gone, as `| head` does: there is nobody left to tell anything. */
function endWhenUnread(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPIPE") process.exit(brokenPipeCode);
      throw error;
    });
  }
}

async function readStandardInput(): Promise<string> {
  const lines = createInterface({ input: process.stdin, terminal: false });
  for await (const line of lines) {
    lines.close();
    return line;
  }
  return "";
}
