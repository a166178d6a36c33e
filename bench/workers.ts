// What a request and a chunk cost with several workers: processor time summed over all processes, beside that of one
// process, and beside that of as many processes that know nothing of each other.
import { startApart } from "./apart.ts";
import type { Surroundings } from "./core.ts";
import { headraceSettleMs, quietMs } from "./core.ts";
import { ratios, samplesOf } from "./figures.ts";
import { type Audit, audit } from "./governance.ts";
import { type Headrace, startHeadrace } from "./headrace.ts";
import { type Bench, type Sample, sampleOf, type Target, verify, warmUp } from "./measure.ts";
import { cpuMicros, cpuSnapshot, settledRssBytes } from "./process-usage.ts";
import { chatMany, type Scenario, streamFull, streamPaced, streamShort } from "./scenarios.ts";
import type { Spread } from "./statistics.ts";
import { upstreamModel } from "./workload.ts";

export interface WorkersPoint {
  workers: number;
  target: string;
  /** The target of the same rounds with the first number of workers; undefined for that itself. */
  one?: string;
  /** The target of the same rounds that is as many processes apart. */
  apart?: string;
  /** The part of the processor time of a request, and of a chunk at full speed, that is not the workers': 0 to 1. */
  primaryShare: { request: number; chunk: number } | null;
  rssBytes: number;
}

export interface WorkersResult {
  points: readonly WorkersPoint[];
  samples: readonly Sample[];
  audits: readonly Audit[];
}

/** Workers with which the primary process would have nothing left of one processor, if its cost grows with theirs. */
export function maxWorkers({ primaryShare }: WorkersPoint): number | undefined {
  if (!primaryShare) return undefined;
  return Math.min(...[primaryShare.request, primaryShare.chunk].map((share) => (1 - share) / share));
}

/** The cost beside that of one process, or of processes apart; undefined where there is nothing to compare with. */
export function workersRatioOf(
  { samples }: WorkersResult,
  scenario: string,
  point: WorkersPoint,
  { to, figure }: { to: "one" | "apart"; figure: (sample: Sample) => number },
): Spread | undefined {
  const base = point[to];
  if (base === undefined) return undefined;
  return ratios(samplesOf(samples, scenario, point.target), samplesOf(samples, scenario, base), figure);
}

/** What takes its turn. */
interface Running {
  target: Target;
  bench: Bench;
  /** Each process that serves has as many connections as one alone: so it finds as much to do at once. */
  serving: number;
}

interface Server extends Running {
  headrace: Headrace;
  audit(): Promise<Audit>;
}

/** `counts`: numbers of workers. Each but the first runs beside the first and beside processes apart; they take turns. */
export async function measureWorkers(surroundings: Surroundings, counts: readonly number[]): Promise<WorkersResult> {
  const [first = 1, ...others] = counts;
  const result = { points: [] as WorkersPoint[], samples: [] as Sample[], audits: [] as Audit[] };
  if (others.length === 0) await measureBeside(surroundings, first, undefined, result);
  for (const count of others) await measureBeside(surroundings, first, count, result);
  return result;
}

async function measureBeside(
  surroundings: Surroundings,
  first: number,
  count: number | undefined,
  result: { points: WorkersPoint[]; samples: Sample[]; audits: Audit[] },
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const suffix = count === undefined ? "" : `beside${count}`;
  surroundings.tell(`${count ?? first} workers …`);
  const one = await startServer(surroundings, stack, { workers: first, name: `workers${first}${suffix}` });
  const several =
    count === undefined
      ? undefined
      : await startServer(surroundings, stack, { workers: count, name: `workers${count}` });
  const apart =
    count === undefined ? undefined : await startApart(surroundings, { name: `apart${count}`, count, stack });
  const running: Running[] = [one];
  if (several && apart && count !== undefined) running.push(several, { ...apart, serving: count });
  result.samples.push(...(await inTurns(surroundings, running, count ?? first)));
  if (result.points.length === 0) result.points.push(await pointOf(surroundings, one));
  if (several && apart) {
    const beside = { one: one.target.name, apart: apart.target.name };
    result.points.push({ ...(await pointOf(surroundings, several)), ...beside });
  }
  for (const server of several ? [one, several] : [one]) result.audits.push(await server.audit());
  if (apart) result.audits.push(...(await apart.audits()));
}

async function startServer(
  { bench, placement }: Surroundings,
  stack: AsyncDisposableStack,
  { workers, name }: { workers: number; name: string },
): Promise<Server> {
  const start = { upstreamPort: bench.mock.port, prefix: placement.gateway, source: name, workers };
  const headrace = stack.use(await startHeadrace(start));
  const title = `Headrace, ${workers} ${workers === 1 ? "process" : "workers"}`;
  const target: Target = {
    ...{ name, title, port: headrace.port, key: headrace.key, model: upstreamModel, answersAs: upstreamModel },
    ...{ pids: headrace.pids, settleMs: headraceSettleMs },
  };
  const before = await headrace.booked();
  await verify(target);
  return {
    ...{ target, bench, serving: workers, headrace },
    audit: () => audit(title, bench.mock, name, headrace.booked, { before }),
  };
}

async function inTurns(
  { options, tell }: Surroundings,
  running: readonly Running[],
  workers: number,
): Promise<Sample[]> {
  tell("Warming up …");
  await Bun.sleep(quietMs);
  // In turns: whoever has nothing to do for 20 seconds lets go of its compiled code.
  for (let pass = 0; pass < options.warmUpPasses; pass++) {
    for (const { bench, target, serving } of running) {
      const warming = [chatMany, streamShort, streamFull].map((scenario) => ofEach(scenario, serving));
      await warmUp(bench, warming, target, 1);
    }
  }
  const samples: Sample[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    tell(`${workers} workers: round ${round} of ${options.rounds} …`);
    for (const scenario of [chatMany, streamPaced, streamFull]) {
      const order = round % 2 === 0 ? running : running.toReversed();
      for (const { bench, target, serving } of order)
        samples.push(await sampleOf(bench, ofEach(scenario, serving), target, round));
    }
  }
  return samples;
}

async function pointOf({ options }: Surroundings, { bench, target, serving, headrace }: Server): Promise<WorkersPoint> {
  const share = async (scenario: Scenario) => {
    const [primary = 0] = headrace.pids();
    const before = [cpuSnapshot([primary]), cpuSnapshot(headrace.pids())] as const;
    await sampleOf(bench, ofEach(scenario, serving), target, 0);
    return cpuMicros(before[0], cpuSnapshot([primary])) / cpuMicros(before[1], cpuSnapshot(headrace.pids()));
  };
  return {
    ...{ workers: serving, target: target.name },
    primaryShare: serving === 1 ? null : { request: await share(chatMany), chunk: await share(streamFull) },
    rssBytes: await settledRssBytes(headrace.pids(), options.settleMs),
  };
}

function ofEach(scenario: Scenario, processes: number): Scenario {
  return { ...scenario, connections: scenario.connections * processes };
}
