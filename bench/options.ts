// The command line of `npm run bench`.
import { parseArgs } from "node:util";

export interface BenchOptions {
  /** How often every measurement is repeated; the targets take turns within each round. */
  rounds: number;
  /** Length of one measurement. */
  windowMs: number;
  /** How many times a process is started for the start-up figure. */
  starts: number;
  /** Length of one measurement of the built-in engine. */
  engineWindowMs: number;
  /** Where the figures go as JSON; undefined: nowhere. */
  jsonFile: string | undefined;
  /** Where a CPU profile of the gateway goes; undefined: none is taken. */
  profileDir: string | undefined;
}

export const usage = `Usage: npm run bench -- [options]

  --rounds <n>    interleaved rounds, 1 to 100 (default 5; 2 with --quick)
  --quick         about 20 s instead of about 60 s; wider spread
  --json <file>   also write every figure of every round as JSON
  --profile <dir> take a CPU profile of the gateway, for Chrome's DevTools or as text; costs it about a tenth
  --help          this text`;

export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Undefined where only the help was asked for. Throws UsageError, whose message names the option and what it takes. */
export function readOptions(args: readonly string[]): BenchOptions | undefined {
  const { quick, rounds, json, profile, help } = parse(args);
  if (help) return undefined;
  const count = Number(rounds ?? (quick ? 2 : 5));
  if (!Number.isInteger(count) || count < 1 || count > 100) {
    throw new UsageError(`--rounds must be a whole number from 1 to 100 (got ${rounds}).`);
  }
  if (json === "") throw new UsageError("--json must name a file.");
  if (profile === "") throw new UsageError("--profile must name a directory.");
  return {
    rounds: count,
    windowMs: quick ? 200 : 350,
    starts: quick ? 2 : 5,
    engineWindowMs: quick ? 500 : 2_000,
    jsonFile: json,
    profileDir: profile,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        rounds: { type: "string" },
        quick: { type: "boolean", default: false },
        json: { type: "string" },
        profile: { type: "string" },
        help: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}
