// Measures how the cost of a request grows with the number of keys, of models, with the body, and with the ledger.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { headraceSettleMs, quietMs, type Surroundings } from "./core.ts";
import { type Audit, audit, type UsageTotals } from "./governance.ts";
import { type Headrace, type HeadraceOptions, startHeadrace } from "./headrace.ts";
import { moreModelIds } from "./headrace-config.ts";
import { type Bench, jobOf, measure, type Sample, type Target, verify, warmUp, warmUpInTurns } from "./measure.ts";
import { findNginx, startNginx } from "./nginx.ts";
import { addKeys, addPast } from "./prefill.ts";
import { cpuMicros, cpuSnapshot, settledRssBytes } from "./process-usage.ts";
import { chatMany, type Scenario } from "./scenarios.ts";
import { renamedModel, upstreamModel } from "./workload.ts";

export type ScalingName = "keys" | "models" | "bodies" | "ledger" | "tools";

/** One line of the table: so many of something, and what measured there. */
export interface ScalingPoint {
  at: number;
  /** Points of one series are compared with its first, or with the baseline at the same place. */
  series: string;
  /** The scenario and target by which the samples are found. */
  scenario: string;
  target: string;
  rssBytes: number | null;
  /** Microseconds of processor time for a request with a key that was not used before. */
  firstUseMicros: number | null;
}

export interface ScalingResult {
  name: ScalingName;
  title: string;
  /** The quantity that `at` counts. */
  axis: string;
  /** Series to which the others are compared; undefined: each to its own first point. */
  baseline: string | undefined;
  points: readonly ScalingPoint[];
  samples: readonly Sample[];
  audits: readonly Audit[];
}

const keyCounts = [10, 1_000, 100_000];
const modelCounts = [1, 100, 1_000];
const pastRequests = [0, 1_000_000];
const bodySizes = [1_000, 10_000, 100_000, 1_000_000];
const bodyConnections = 16;
/** Time after a load in which a gateway gives back what only that needed. */
const restMs = 25_000;

/** One process of the gateway among several that are compared. */
interface Variant {
  at: number;
  start: HeadraceOptions;
  target(headrace: Headrace): Partial<Target>;
}

export async function measureKeys(surroundings: Surroundings): Promise<ScalingResult> {
  const directory = mkdtempSync(join(tmpdir(), "headrace-bench-keys-"));
  const file = (count: number) => join(directory, `${count}.txt`);
  try {
    const result = await measureVariants(surroundings, {
      name: "keys",
      variants: keyCounts.map((at) => ({
        at,
        start: { upstreamPort: 0, prepare: (dataDir) => addKeys(dataDir, at, file(at)) },
        target: () => ({ keysFile: file(at) }),
      })),
      useEachKey: true,
    });
    return { ...result, name: "keys", title: "Number of keys, used at random", axis: "keys" };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

export async function measureModels(surroundings: Surroundings): Promise<ScalingResult> {
  const result = await measureVariants(surroundings, {
    name: "models",
    variants: modelCounts.map((at) => ({
      at,
      start: { upstreamPort: 0, moreModels: at },
      target: () => ({ model: moreModelIds(1)[0] ?? "", models: moreModelIds(at) }),
    })),
  });
  return { ...result, name: "models", title: "Number of models, asked for at random", axis: "models" };
}

export async function measureLedger(surroundings: Surroundings): Promise<ScalingResult> {
  const result = await measureVariants(surroundings, {
    name: "ledger",
    variants: pastRequests.map((at) => ({
      at,
      start: { upstreamPort: 0, prepare: (dataDir) => addPast(dataDir, at) },
      target: () => ({}),
    })),
  });
  return { ...result, name: "ledger", title: "Requests in the ledger already", axis: "requests" };
}

/** All processes run at once, and take turns. */
async function measureVariants(
  { bench, options, placement, tell }: Surroundings,
  given: { name: ScalingName; variants: readonly Variant[]; useEachKey?: boolean },
) {
  await using stack = new AsyncDisposableStack();
  const { mock } = bench;
  const running: { target: Target; headrace: Headrace; source: string; before: UsageTotals; point: ScalingPoint }[] =
    [];
  for (const { at, start, target } of given.variants) {
    tell(`${given.name}: ${at} …`);
    const source = `${given.name}${at}`;
    const headrace = stack.use(
      await startHeadrace({ ...start, upstreamPort: mock.port, prefix: placement.gateway, source }),
    );
    const before = await headrace.booked();
    const name = `${given.name}-${at}`;
    const plain: Target = {
      name,
      title: `Headrace, ${at} ${given.name}`,
      port: headrace.port,
      key: headrace.key,
      model: upstreamModel,
      pids: headrace.pids,
      settleMs: headraceSettleMs,
    };
    const full = { ...plain, ...target(headrace) };
    if (full.keysFile !== undefined) full.key = await firstLine(full.keysFile);
    await verify(full);
    await warmUp(bench, [chatMany], given.useEachKey ? plain : full, options.warmUpPasses);
    const firstUseMicros = given.useEachKey ? await useEachKey(bench, full, at) : null;
    const point = { at, series: "Headrace", scenario: chatMany.name, target: name, rssBytes: null, firstUseMicros };
    running.push({ target: full, headrace, source, before, point });
  }
  // A gateway lets go of its compiled code once, in its first quiet second: what the first ones were warm with is gone.
  await Bun.sleep(quietMs);
  const targets = running.map((one) => one.target);
  await warmUpInTurns(bench, [chatMany], targets, options.warmUpPasses);
  const samples = await measure(bench, {
    scenarios: [chatMany],
    targets,
    rounds: options.rounds,
    onRound: (round) => tell(`${given.name}: round ${round} of ${options.rounds} …`),
  });
  const points: ScalingPoint[] = [];
  const audits: Audit[] = [];
  await Bun.sleep(restMs);
  for (const { headrace, source, before, point, target } of running) {
    points.push({ ...point, rssBytes: await settledRssBytes(target.pids(), options.settleMs / 2) });
    audits.push(await audit(target.title, mock, source, headrace.booked, { before }));
  }
  return { baseline: undefined, points, samples, audits };
}

/** Every key once, in turn: afterwards the gateway has seen them all. Microseconds of processor time for each; null of few. */
async function useEachKey({ load }: Bench, target: Target, count: number): Promise<number | null> {
  const before = cpuSnapshot(target.pids());
  const job = { ...jobOf(chatMany, target, 120_000), maxRequests: count, inOrder: true };
  const { requests, errors } = await load.run(job);
  if (requests !== count)
    throw new Error(`${target.title}: ${requests} of ${count} keys work: ${JSON.stringify(errors)}`);
  await Bun.sleep(target.settleMs);
  // Other work of the process would be most of what so few cost.
  return count < fewKeys ? null : cpuMicros(before, cpuSnapshot(target.pids())) / count;
}

const fewKeys = 1_000;

async function firstLine(file: string): Promise<string> {
  return (await Bun.file(file).text()).split("\n")[0] ?? "";
}

export async function measureBodies({ bench, options, placement, tell }: Surroundings): Promise<ScalingResult> {
  await using stack = new AsyncDisposableStack();
  const { mock } = bench;
  const prefix = placement.gateway;
  const nginxFile = findNginx();
  const nginx = nginxFile === undefined ? undefined : stack.use(await startNginx(nginxFile, mock.port, { prefix }));
  const headrace = stack.use(await startHeadrace({ upstreamPort: mock.port, prefix, source: "bodies" }));
  const own = { port: headrace.port, key: headrace.key, pids: headrace.pids, settleMs: headraceSettleMs };
  const targets: Target[] = [
    ...(nginx
      ? [{ ...own, name: "nginx", title: "nginx", port: nginx.port, pids: () => nginx.pids, model: upstreamModel }]
      : []),
    { ...own, name: "same", title: "Headrace, same id", model: upstreamModel },
    { ...own, name: "renamed", title: "Headrace, renamed id", model: renamedModel },
  ];
  const scenarios: Scenario[] = bodySizes.map((bodyBytes) => ({
    ...chatMany,
    name: `body-${bodyBytes}`,
    title: `Body of ${bodyBytes} bytes`,
    connections: bodyConnections,
    direct: false,
    bodyBytes,
  }));
  tell("bodies: warming up …");
  const short = { ...bench, windowMs: Math.min(bench.windowMs, 1_000) };
  for (const target of targets) await warmUp(short, scenarios, target, options.warmUpPasses);
  const samples = await measure(short, {
    scenarios,
    targets,
    rounds: options.rounds,
    onRound: (round) => tell(`bodies: round ${round} of ${options.rounds} …`),
  });
  const points = targets.flatMap(({ name, title }) =>
    bodySizes.map((at, index) => ({
      at,
      series: title,
      scenario: scenarios[index]?.name ?? "",
      target: name,
      rssBytes: null,
      firstUseMicros: null,
    })),
  );
  return {
    name: "bodies",
    title: `Size of a request's body, ${bodyConnections} connections`,
    axis: "bytes",
    baseline: nginx ? "nginx" : undefined,
    points,
    samples,
    audits: [await audit("Bodies", mock, "bodies", headrace.booked)],
  };
}
