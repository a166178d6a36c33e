// `npm run bench`: what Headrace costs beside nginx, in front of the same mock upstream.
import { writeFileSync } from "node:fs";
import { cpus, loadavg, release } from "node:os";
import { measureEngine } from "./built-in-engine.ts";
import { type Headrace, measureStarts, startHeadrace } from "./headrace.ts";
import { startLoadGenerator } from "./load.ts";
import { measure, type Target, verify } from "./measure.ts";
import { type MockUpstream, startMock } from "./mock.ts";
import { findNginx, type Nginx, startNginx } from "./nginx.ts";
import { type BenchOptions, readOptions, UsageError, usage } from "./options.ts";
import { rssBytes } from "./process-usage.ts";
import { type BenchResult, faults, render } from "./report.ts";
import { renamedModel, upstreamModel } from "./workload.ts";

/** The gateway writes its ledger and its log at most this long after an answer. */
const headraceSettleMs = 250;
const plainSettleMs = 20;

const interruption = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interruption.abort());

async function run(options: BenchOptions): Promise<BenchResult> {
  const loadBefore = loadavg()[0] ?? 0;
  await using stack = new AsyncDisposableStack();
  const mock = stack.use(await startMock());
  const load = stack.use(startLoadGenerator());
  // Without it the measurement under way fails, and all that was started is stopped in order.
  interruption.signal.addEventListener("abort", () => void load[Symbol.asyncDispose]());
  const nginxFile = findNginx();
  const nginx = nginxFile === undefined ? undefined : stack.use(await startNginx(nginxFile, mock.port));
  tell("Start-up …");
  const startMs = await measureStarts(options.starts, mock.port);
  const headrace = stack.use(await startHeadrace({ upstreamPort: mock.port, profileDir: options.profileDir }));
  const targets = targetsOf(mock, nginx, headrace);
  const idleRss = rssBytes(headrace.pids());
  for (const target of targets) await verify(target);
  const samples = await measure({
    load,
    mock,
    targets,
    rounds: options.rounds,
    windowMs: options.windowMs,
    onRound: (round) => tell(round === 0 ? "Warming up …" : `Round ${round} of ${options.rounds} …`),
  });
  const loadedRss = rssBytes(headrace.pids());
  tell("Built-in engine …");
  const engine = await measureEngine(load, options.engineWindowMs);
  return {
    machine: {
      cpu: cpus()[0]?.model ?? "unknown",
      cores: cpus().length,
      kernel: release(),
      bun: Bun.version,
      nginx: nginx?.version ?? null,
      loadBefore,
      loadAfter: loadavg()[0] ?? 0,
    },
    options,
    targets: targets.map(({ name, title }) => ({ name, title })),
    baseline: nginx ? "nginx" : "direct",
    samples,
    rss: { headraceIdle: idleRss, headraceLoaded: loadedRss, nginxLoaded: nginx ? rssBytes(nginx.pids) : null },
    startMs,
    engine,
  };
}

function targetsOf(mock: MockUpstream, nginx: Nginx | undefined, headrace: Headrace): Target[] {
  const { key, port } = headrace;
  const plain = { key, model: upstreamModel, settleMs: plainSettleMs };
  const own = { key, port, settleMs: headraceSettleMs, pids: () => headrace.pids() };
  return [
    { name: "direct", title: "mock upstream alone", port: mock.port, pids: () => [mock.pid], ...plain },
    ...(nginx ? [{ name: "nginx", title: "nginx", port: nginx.port, pids: () => nginx.pids, ...plain }] : []),
    { name: "same", title: "Headrace, same id", model: upstreamModel, ...own },
    { name: "renamed", title: "Headrace, renamed", model: renamedModel, ...own },
  ];
}

/** Progress goes to standard error, the result to standard output. */
function tell(line: string): void {
  process.stderr.write(`${line}\n`);
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (!options) {
    console.log(usage);
    return 0;
  }
  if (process.platform !== "linux") throw new UsageError("The benchmark reads /proc, which only Linux has.");
  const result = await run(options);
  if (options.jsonFile !== undefined) writeFileSync(options.jsonFile, `${JSON.stringify(result, null, 2)}\n`);
  console.log(render(result));
  const found = faults(result);
  for (const fault of found) tell(`Fault: ${fault}`);
  return found.length === 0 ? 0 : 1;
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
