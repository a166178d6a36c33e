// What every command is given of the world outside, so that a test can give it another.
import { createInterface } from "node:readline";
import { loadDataDir, loadPullSource, type PullSource } from "../config.ts";
import { createTerminal, type Env, type Terminal } from "./terminal.ts";

export interface CliContext {
  env: Env;
  terminal: Terminal;
  /** The data directory as `headrace serve` would choose it. Absolute. Rejects with a ConfigError. */
  dataDir(flag: string | undefined): Promise<string>;
  /** Throws a ConfigError. */
  pullSource(): PullSource;
  /** The first line of standard input, without its end; empty when there is none. */
  readLine(): Promise<string>;
}

/** The real world, seen through the environment that config.ts hands out. */
export function createContext(env: Env): CliContext {
  return {
    env,
    terminal: createTerminal(process.stdout, process.stderr, env),
    dataDir: (flag) => loadDataDir({ flags: { dataDir: flag }, env }),
    pullSource: () => loadPullSource(env),
    readLine: readStandardInput,
  };
}

async function readStandardInput(): Promise<string> {
  const lines = createInterface({ input: process.stdin, terminal: false });
  for await (const line of lines) {
    lines.close();
    return line;
  }
  return "";
}
