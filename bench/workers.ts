// What a request and a chunk cost with several workers, beside one process: processor time summed over all processes.
import type { Surroundings } from "./core.ts";
import { headraceSettleMs, quietMs } from "./core.ts";
import { ratios, samplesOf } from "./figures.ts";
import { type Audit, audit, type UsageTotals } from "./governance.ts";
import { type Headrace, startHeadrace } from "./headrace.ts";
import { type Sample, sampleOf, type Target, verify, warmUp } from "./measure.ts";
import { cpuMicros, cpuSnapshot, settledRssBytes } from "./process-usage.ts";
import { chatMany, type Scenario, streamFull, streamPaced, streamShort } from "./scenarios.ts";
import type { Spread } from "./statistics.ts";
import { upstreamModel } from "./workload.ts";

export interface WorkersPoint {
  workers: number;
  target: string;
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
export function mostWorkers({ primaryShare }: WorkersPoint): number | undefined {
  if (!primaryShare) return undefined;
  return Math.min(...[primaryShare.request, primaryShare.chunk].map((share) => (1 - share) / share));
}

/** The cost beside that of the first point; undefined for that itself. */
export function workersRatioOf(
  { points, samples }: WorkersResult,
  scenario: string,
  { target }: WorkersPoint,
  figure: (sample: Sample) => number,
): Spread | undefined {
  const [first] = points;
  if (!first || first.target === target) return undefined;
  return ratios(samplesOf(samples, scenario, target), samplesOf(samples, scenario, first.target), figure);
}

interface Running {
  workers: number;
  headrace: Headrace;
  target: Target;
  source: string;
  before: UsageTotals;
}

/** Each worker has as many connections as one process alone: so it finds as much to do at once. */
function ofEach(scenario: Scenario, workers: number): Scenario {
  return { ...scenario, connections: scenario.connections * workers };
}

/** `counts`: numbers of workers. All of them run at once, and take turns. */
export async function measureWorkers(
  { bench, options, placement, tell }: Surroundings,
  counts: readonly number[],
): Promise<WorkersResult> {
  await using stack = new AsyncDisposableStack();
  const { mock } = bench;
  const running: Running[] = [];
  for (const workers of counts) {
    tell(`${workers} workers …`);
    const source = `workers${workers}`;
    const start = { upstreamPort: mock.port, prefix: placement.gateway, source, workers };
    const headrace = stack.use(await startHeadrace(start));
    const target: Target = {
      ...{ name: source, title: `Headrace, ${workers} ${workers === 1 ? "process" : "workers"}`, port: headrace.port },
      ...{ key: headrace.key, model: upstreamModel, answersAs: upstreamModel },
      ...{ pids: headrace.pids, settleMs: headraceSettleMs },
    };
    running.push({ workers, headrace, target, source, before: await headrace.booked() });
    await verify(target);
  }
  tell("Warming up …");
  await Bun.sleep(quietMs);
  // In turns: whoever has nothing to do for 20 seconds lets go of its compiled code.
  for (let pass = 0; pass < options.warmUpPasses; pass++) {
    for (const { workers, target } of running) {
      const warming = [chatMany, streamShort, streamFull].map((scenario) => ofEach(scenario, workers));
      await warmUp(bench, warming, target, 1);
    }
  }
  const samples: Sample[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    tell(`Workers: round ${round} of ${options.rounds} …`);
    for (const scenario of [chatMany, streamPaced, streamFull]) {
      const order = round % 2 === 0 ? running : running.toReversed();
      for (const { workers, target } of order)
        samples.push(await sampleOf(bench, ofEach(scenario, workers), target, round));
    }
  }
  const points: WorkersPoint[] = [];
  for (const { workers, headrace, target } of running) {
    const share = async (scenario: Scenario) => {
      const [primary = 0] = headrace.pids();
      const before = [cpuSnapshot([primary]), cpuSnapshot(headrace.pids())] as const;
      await sampleOf(bench, ofEach(scenario, workers), target, 0);
      return cpuMicros(before[0], cpuSnapshot([primary])) / cpuMicros(before[1], cpuSnapshot(headrace.pids()));
    };
    points.push({
      ...{ workers, target: target.name },
      primaryShare: workers === 1 ? null : { request: await share(chatMany), chunk: await share(streamFull) },
      rssBytes: await settledRssBytes(headrace.pids(), options.settleMs),
    });
  }
  const audits = await Promise.all(
    running.map(({ target, source, headrace, before }) =>
      audit(target.title, mock, source, headrace.booked, { before }),
    ),
  );
  return { points, samples, audits };
}
