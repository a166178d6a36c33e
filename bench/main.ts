// `npm run bench`: what Headrace costs beside nginx, in front of the same mock upstream.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release } from "node:os";
import { dirname } from "node:path";
import { compareEngine } from "./built-in-engine.ts";
import { measureCore, type Surroundings } from "./core.ts";
import { writeDocs } from "./docs-page.ts";
import { measureFirstChunk } from "./first-chunk.ts";
import { measureFormats } from "./formats.ts";
import { goals } from "./goals.ts";
import { measureIdleStreams } from "./idle-streams.ts";
import { startLoadGenerator } from "./load.ts";
import { measureMemory } from "./memory.ts";
import { startMock } from "./mock.ts";
import { findNginx, versionOf } from "./nginx.ts";
import { type BenchOptions, readOptions, type SectionName, usage } from "./options.ts";
import { choosePlacement, unplaced } from "./placement.ts";
import { plot } from "./plot.ts";
import { render } from "./report.ts";
import { type BenchResult, faults } from "./result.ts";
import { measureBodies, measureKeys, measureLedger, measureModels } from "./scaling.ts";
import { measureTools } from "./tools.ts";
import { UsageError } from "./usage-error.ts";
import { measureWorkers } from "./workers.ts";

const interruption = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interruption.abort());

/** Chats of one measurement of the built-in engine. */
const engineChats = 8;

/** A section that fails leaves the others their figures: they took minutes. */
function sectionsOf({ sections }: BenchOptions) {
  const failed: string[] = [];
  const measured = async <Result>(name: SectionName, measure: () => Promise<Result>): Promise<Result | null> => {
    if (!sections.includes(name)) return null;
    try {
      return await measure();
    } catch (error) {
      if (interruption.signal.aborted) throw error;
      failed.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
      return null;
    }
  };
  return { measured, failed };
}

async function run(options: BenchOptions): Promise<BenchResult> {
  const loadBefore = loadavg()[0] ?? 0;
  const placement = options.pin ? choosePlacement() : unplaced;
  await using stack = new AsyncDisposableStack();
  const mock = stack.use(await startMock({ port: options.mockPort, prefix: placement.load }));
  const load = stack.use(startLoadGenerator(placement.load));
  // The end of the load generator makes the measurement under way fail, and all that was started is stopped in order.
  interruption.signal.addEventListener("abort", () => void load[Symbol.asyncDispose]());
  const surroundings: Surroundings = { bench: { mock, load, windowMs: options.windowMs }, options, placement, tell };
  const { measured, failed } = sectionsOf(options);
  const core = await measured("core", () => measureCore(surroundings));
  const scaling = [];
  for (const [name, measureSection] of [
    ["keys", measureKeys],
    ["models", measureModels],
    ["bodies", measureBodies],
    ["ledger", measureLedger],
  ] as const) {
    const section = await measured(name, () => measureSection(surroundings));
    if (section) scaling.push(section);
  }
  scaling.push(...((await measured("tools", () => measureTools(surroundings))) ?? []));
  const formats = await measured("formats", () => measureFormats(surroundings));
  const memory = await measured("memory", () => measureMemory(surroundings));
  const workers = await measured("workers", () => measureWorkers(surroundings, options.workers));
  const firstChunk = await measured("first-chunk", () => measureFirstChunk(surroundings));
  const streams = await measured("streams", () => measureIdleStreams(surroundings));
  const onRound = (round: number) => tell(`Built-in engine: round ${round} of ${options.engineRounds} …`);
  const engine = await measured("engine", () =>
    compareEngine({ rounds: options.engineRounds, chats: engineChats, onRound }),
  );
  return {
    at: new Date().toISOString(),
    commit: commit(),
    machine: {
      cpu: cpus()[0]?.model ?? "unknown",
      cores: cpus().length,
      kernel: release(),
      bun: Bun.version,
      nginx: nginxVersion(),
      loadBefore,
      loadAfter: loadavg()[0] ?? 0,
    },
    rounds: options.rounds,
    windowMs: options.windowMs,
    pinned: placement !== unplaced,
    core,
    engine,
    scaling,
    formats,
    memory,
    firstChunk,
    workers,
    streams,
    failed,
  };
}

function commit(): string | null {
  const git = (...args: string[]) => Bun.spawnSync(["git", ...args], { cwd: import.meta.dir, stderr: "ignore" });
  if (Bun.which("git") === null) return null;
  const head = git("rev-parse", "--short", "HEAD");
  if (head.exitCode !== 0) return null;
  const changed = git("status", "--porcelain", "--untracked-files=no").stdout.length > 0;
  return `${head.stdout.toString().trim()}${changed ? "-dirty" : ""}`;
}

function nginxVersion(): string | null {
  const file = findNginx();
  return file === undefined ? null : versionOf(file);
}

/** Progress goes to standard error, the result to standard output. */
function tell(line: string): void {
  process.stderr.write(`${line}\n`);
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (!options) {
    console.log(usage);
    return 0;
  }
  if (process.platform !== "linux") throw new UsageError("The benchmark reads /proc, which only Linux has.");
  const { from } = options;
  const result = from === undefined ? await run(options) : (JSON.parse(readFileSync(from, "utf8")) as BenchResult);
  if (from === undefined) write(options.jsonFile, `${JSON.stringify(result, null, 1)}\n`);
  write(options.plotFile, plot(result));
  console.log(render(result));
  tell(`Figures: ${from ?? options.jsonFile}\nDrawing: ${options.plotFile}`);
  const found = faults(result);
  for (const fault of found) tell(`Fault: ${fault}`);
  if (options.docs && found.length === 0) writeDocs(result);
  const missed = options.assert ? goals(result).filter(({ met }) => !met) : [];
  return found.length === 0 && missed.length === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (interruption.signal.aborted) {
    process.exitCode = 130;
  } else if (error instanceof UsageError) {
    tell(`${error.message}\n\n${usage}`);
    process.exitCode = 2;
  } else {
    throw error;
  }
}
