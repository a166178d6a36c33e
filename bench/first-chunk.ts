// Measures how long 64 streams that begin at once wait for their first chunk, beside nginx.
import { headraceSettleMs, type Surroundings } from "./core.ts";
import { samplesOf } from "./figures.ts";
import { type Audit, audit } from "./governance.ts";
import { startHeadrace } from "./headrace.ts";
import { measure, type Sample, type Target, verify, warmUp } from "./measure.ts";
import { findNginx, startNginx } from "./nginx.ts";
import { chatMany, type Scenario, streamPaced, streamShort } from "./scenarios.ts";
import { type Spread, spread } from "./statistics.ts";
import { UsageError } from "./usage-error.ts";
import { upstreamModel } from "./workload.ts";

export interface FirstChunkResult {
  targets: readonly { name: string; title: string }[];
  samples: readonly Sample[];
  audit: Audit;
}

/** The streams are of no interest beyond their first chunk. */
const firstChunk: Scenario = { ...streamPaced, name: "first-chunk", plan: () => ({ chunks: 10, paceMs: 15 }) };
/** Rounds for one of other sections: each is over within a second, and has one figure for its 64 streams. */
const roundsForOne = 6;

export async function measureFirstChunk(surroundings: Surroundings): Promise<FirstChunkResult> {
  const { bench, options, placement, tell } = surroundings;
  const { mock } = bench;
  const prefix = placement.gateway;
  const nginxFile = findNginx();
  if (nginxFile === undefined)
    throw new UsageError("--section first-chunk compares with nginx, which is not installed.");
  await using stack = new AsyncDisposableStack();
  const nginx = stack.use(await startNginx(nginxFile, mock.port, { prefix }));
  const headrace = stack.use(await startHeadrace({ upstreamPort: mock.port, prefix, source: "first" }));
  const own = { key: headrace.key, model: upstreamModel, settleMs: headraceSettleMs };
  const targets: Target[] = [
    { ...own, name: "nginx", title: "nginx", port: nginx.port, pids: () => nginx.pids },
    { ...own, name: "same", title: "Headrace", port: headrace.port, pids: headrace.pids },
  ];
  tell("first-chunk: warming up …");
  for (const target of targets) {
    await verify(target);
    await warmUp(bench, [chatMany, streamShort], target, options.warmUpPasses);
  }
  const samples = await measure(bench, {
    scenarios: [firstChunk],
    targets,
    rounds: options.rounds * roundsForOne,
    onRound: (round) => {
      if (round % roundsForOne === 1) tell(`first-chunk: round ${round} of ${options.rounds * roundsForOne} …`);
    },
  });
  return {
    targets: targets.map(({ name, title }) => ({ name, title })),
    samples,
    audit: await audit("First chunk", mock, "first", headrace.booked),
  };
}

/** Milliseconds by which the median of a round is more than nginx's of the same round. */
export function addedFirstChunk({ samples }: FirstChunkResult): Spread {
  const base = samplesOf(samples, firstChunk.name, "nginx");
  return spread(
    samplesOf(samples, firstChunk.name, "same").map(({ round, firstEventP50Ms }) => {
      const other = base.find((sample) => sample.round === round)?.firstEventP50Ms;
      return (firstEventP50Ms ?? Number.NaN) - (other ?? Number.NaN);
    }),
  );
}
