// The command line of `npm run bench`.
import { parseArgs } from "node:util";
import { type OtherGateway, readOther } from "./other-gateway.ts";
import { UsageError } from "./usage-error.ts";

export const sections = [
  "core",
  "engine",
  "keys",
  "models",
  "bodies",
  "streams",
  "ledger",
  "formats",
  "memory",
  "first-chunk",
  "workers",
  "tools",
] as const;
export type SectionName = (typeof sections)[number];

export interface BenchOptions {
  /** The sections that are measured. */
  sections: readonly SectionName[];
  /** Numbers of workers that the section of these compares; the first is what the others are compared with. */
  workers: readonly number[];
  /** Number of rounds in which every measurement is repeated; the targets take turns within each. */
  rounds: number;
  /** Length of one measurement. */
  windowMs: number;
  /** Most passes of load before the first round. */
  warmUpPasses: number;
  /** Number of times a process is started for the start-up figure. */
  starts: number;
  /** Milliseconds for which memory may settle before it is read. */
  settleMs: number;
  /** Rounds of the built-in engine: as many in one order as in the other. */
  engineRounds: number;
  others: readonly OtherGateway[];
  /** Port of the mock upstream, 0 for any: another gateway must know it beforehand. */
  mockPort: number;
  /** Whether processes are bound to processors. */
  pin: boolean;
  /** The files for the figures as JSON, and for their plot. */
  jsonFile: string;
  plotFile: string;
  /** An earlier JSON file that is shown again instead of measuring. */
  from: string | undefined;
  /** Whether the figures in docs/ are replaced. */
  docs: boolean;
  /** Whether a goal that is missed fails the command. */
  assert: boolean;
  /** The directory for a CPU profile of the gateway; undefined: none is taken. */
  profileDir: string | undefined;
}

export const usage = `Usage: npm run bench -- [options]

  (none)            core comparison and built-in engine, about 8 minutes
  --quick           the core comparison alone, in less than a minute; wider spread
  --full            everything, about 35 minutes
  --section <list>  only these, separated by commas: ${sections.join(", ")}
  --workers <list>  the section workers alone, with these numbers of them (default 1,2,4)
  --rounds <n>      interleaved rounds, 1 to 100 (default 5; 2 with --quick)
  --other <name>=<base URL>[,key=<key>][,model=<id>][,pid=<process>][,header=<name>:<value>]
                    another gateway, already running, in the same rounds; may be repeated. Its upstream
                    must be the mock, http://127.0.0.1:<mock port>/v1; its cost is measured where pid is given
  --mock-port <n>   port of the mock upstream (default: any)
  --no-pin          let the kernel choose processors
  --json <file>     figures of every round (default bench/results/latest.json)
  --plot <file>     the figures drawn, as SVG (default bench/results/latest.svg)
  --docs            put the figures and the drawing into docs/benchmark.md
  --from <file>     show, draw or put into docs an earlier --json file instead of measuring
  --assert          end with exit code 1 where a goal is missed
  --profile <dir>   take a CPU profile of the gateway, for Chrome's DevTools or as text; costs it about a tenth
  --help            this text`;

const resultsDir = new URL("./results/", import.meta.url).pathname;

/** Undefined where only the help was asked for. Throws UsageError, whose message names the option and what it takes. */
export function readOptions(args: readonly string[]): BenchOptions | undefined {
  const { quick, full, section, rounds, other, help, workers, ...given } = parse(args);
  if (help) return undefined;
  for (const name of ["json", "plot", "from", "profile"] as const) {
    if (given[name] === "") throw new UsageError(`--${name} must name a ${name === "profile" ? "directory" : "file"}.`);
  }
  return {
    sections: chosenSections({ quick, full, section: section ?? (workers === undefined ? undefined : "workers") }),
    workers: (workers ?? "1,2,4").split(",").map((text) => wholeNumber("--workers", text.trim(), 1, 64)),
    rounds: wholeNumber("--rounds", rounds ?? (quick ? "2" : "5"), 1, 100),
    windowMs: quick ? 350 : 1_250,
    warmUpPasses: quick ? 4 : 8,
    starts: quick ? 2 : 5,
    settleMs: quick ? 1_000 : 5_000,
    engineRounds: quick ? 2 : full ? 6 : 4,
    others: (other ?? []).map(readOther),
    mockPort: wholeNumber("--mock-port", given["mock-port"] ?? "0", 0, 65_535),
    pin: !given["no-pin"],
    jsonFile: given.json ?? `${resultsDir}latest.json`,
    plotFile: given.plot ?? `${resultsDir}latest.svg`,
    from: given.from,
    docs: given.docs,
    assert: given.assert,
    profileDir: given.profile,
  };
}

function chosenSections(given: { quick: boolean; full: boolean; section: string | undefined }): SectionName[] {
  if (given.section === undefined) return given.full ? [...sections] : given.quick ? ["core"] : ["core", "engine"];
  return given.section.split(",").map((name) => {
    const known = sections.find((one) => one === name.trim());
    if (known) return known;
    throw new UsageError(`--section must be of ${sections.join(", ")}, separated by commas (got ${name}).`);
  });
}

function wholeNumber(option: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (text !== "" && Number.isInteger(value) && value >= least && value <= most) return value;
  throw new UsageError(`${option} must be a whole number from ${least} to ${most} (got ${text}).`);
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        quick: { type: "boolean", default: false },
        full: { type: "boolean", default: false },
        section: { type: "string" },
        rounds: { type: "string" },
        workers: { type: "string" },
        other: { type: "string", multiple: true },
        "mock-port": { type: "string" },
        "no-pin": { type: "boolean", default: false },
        json: { type: "string" },
        plot: { type: "string" },
        docs: { type: "boolean", default: false },
        from: { type: "string" },
        assert: { type: "boolean", default: false },
        profile: { type: "string" },
        help: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}
