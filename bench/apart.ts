// Several gateways of one process each, which know nothing of each other, driven as one: what processes cost that merely
// share a processor.
import type { Surroundings } from "./core.ts";
import { headraceSettleMs } from "./core.ts";
import { audit } from "./governance.ts";
import { startHeadrace } from "./headrace.ts";
import { type LoadGenerator, startLoadGenerator } from "./load.ts";
import type { LoadJob, LoadResult } from "./load-generator.ts";
import { type Bench, type Target, verify } from "./measure.ts";
import { median } from "./statistics.ts";
import { upstreamModel } from "./workload.ts";

/** Each gateway has a load generator of its own, which takes its share of a job's connections. */
export async function startApart(
  { bench, placement }: Pick<Surroundings, "bench" | "placement">,
  { name, count, stack }: { name: string; count: number; stack: AsyncDisposableStack },
) {
  const parts = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const source = `${name}x${index}`;
      const headrace = stack.use(
        await startHeadrace({ upstreamPort: bench.mock.port, prefix: placement.gateway, source }),
      );
      return { source, headrace, load: stack.use(startLoadGenerator(placement.load)), before: await headrace.booked() };
    }),
  );
  const [first] = parts;
  if (!first) throw new RangeError("There is at least one gateway.");
  const target: Target = {
    ...{ name, title: `Headrace, ${count} processes apart`, port: first.headrace.port, key: first.headrace.key },
    ...{ model: upstreamModel, answersAs: upstreamModel, settleMs: headraceSettleMs },
    pids: () => parts.flatMap(({ headrace }) => headrace.pids()),
  };
  for (const { headrace } of parts) await verify({ ...target, port: headrace.port, key: headrace.key });
  const load: LoadGenerator = {
    ...first.load,
    run: async (job) =>
      together(
        await Promise.all(
          parts.map(({ load: own, headrace }) =>
            own.run({ ...shareOf(job, count), port: headrace.port, key: headrace.key }),
          ),
        ),
      ),
  };
  return {
    target,
    bench: { ...bench, load } satisfies Bench,
    audits: () =>
      Promise.all(
        parts.map(({ source, headrace, before }) =>
          audit(`${target.title}: ${source}`, bench.mock, source, headrace.booked, { before }),
        ),
      ),
  };
}

function shareOf(job: LoadJob, count: number): LoadJob {
  return {
    ...job,
    connections: Math.ceil(job.connections / count),
    maxRequests: Math.ceil(job.maxRequests / count),
  };
}

/** Counts are summed; of durations it is the median of theirs, but the longest of the whole. */
function together(results: readonly LoadResult[]): LoadResult {
  const sum = (of: (result: LoadResult) => number) => results.reduce((total, result) => total + of(result), 0);
  const middle = (of: (result: LoadResult) => number) => median(results.map(of));
  const errors: Record<string, number> = {};
  for (const result of results)
    for (const [what, count] of Object.entries(result.errors)) errors[what] = (errors[what] ?? 0) + count;
  return {
    requests: sum(({ requests }) => requests),
    events: sum(({ events }) => events),
    reads: sum(({ reads }) => reads),
    tokens: sum(({ tokens }) => tokens),
    seconds: Math.max(...results.map(({ seconds }) => seconds)),
    p50Ms: middle(({ p50Ms }) => p50Ms),
    p99Ms: middle(({ p99Ms }) => p99Ms),
    firstEventP50Ms: middle(({ firstEventP50Ms }) => firstEventP50Ms ?? Number.NaN),
    errors,
  };
}
