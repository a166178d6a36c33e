// The core comparison: nginx, Headrace with everything on, and others, in front of the same mock upstream.
import type { Audit } from "./governance.ts";
import { audit } from "./governance.ts";
import { measureStarts, startHeadrace } from "./headrace.ts";
import { type Bench, measure, type Sample, type Target, verify, warmUpInTurns } from "./measure.ts";
import { findNginx, startNginx } from "./nginx.ts";
import type { BenchOptions } from "./options.ts";
import { targetOf } from "./other-gateway.ts";
import type { Placement } from "./placement.ts";
import { settledRssBytes } from "./process-usage.ts";
import { chatMany, coreScenarios, streamFull, streamShort } from "./scenarios.ts";
import { renamedModel, upstreamModel } from "./workload.ts";

/** The gateway writes its ledger and its log at most this long after an answer. */
export const headraceSettleMs = 250;
export const plainSettleMs = 20;
/** Time in which a gateway has had its first quiet second, in which it lets go of the code that its start compiled. */
export const quietMs = 2_500;

export interface CoreResult {
  targets: readonly { name: string; title: string }[];
  /** The target to which the others are compared. */
  baseline: string;
  samples: readonly Sample[];
  /** Resident bytes by process: before the first request, and at rest after the load. */
  rss: readonly { title: string; idle: number | null; afterLoad: number }[];
  /** Milliseconds from the start of the process to the first answer. */
  startMs: readonly number[];
  audit: Audit;
}

export interface Surroundings {
  bench: Bench;
  options: BenchOptions;
  placement: Placement;
  tell(line: string): void;
}

export async function measureCore({ bench, options, placement, tell }: Surroundings): Promise<CoreResult> {
  const { mock } = bench;
  const prefix = placement.gateway;
  await using stack = new AsyncDisposableStack();
  const nginxFile = findNginx();
  const nginx = nginxFile === undefined ? undefined : stack.use(await startNginx(nginxFile, mock.port, { prefix }));
  tell("Start-up …");
  const startMs = await measureStarts(options.starts, { upstreamPort: mock.port, prefix });
  const { profileDir } = options;
  const headrace = stack.use(await startHeadrace({ upstreamPort: mock.port, prefix, profileDir, source: "core" }));
  const idle = await settledRssBytes(headrace.pids(), options.settleMs);

  const plain = { key: headrace.key, model: upstreamModel, answersAs: upstreamModel, settleMs: plainSettleMs };
  const own = { port: headrace.port, key: headrace.key, pids: headrace.pids, settleMs: headraceSettleMs };
  const gateways: Target[] = [
    ...(nginx ? [{ name: "nginx", title: "nginx", port: nginx.port, pids: () => nginx.pids, ...plain }] : []),
    { name: "same", title: "Headrace, same id", model: upstreamModel, answersAs: upstreamModel, ...own },
    { name: "renamed", title: "Headrace, renamed id", model: renamedModel, answersAs: renamedModel, ...own },
    ...options.others.map(targetOf),
  ];
  const targets: Target[] = [
    { name: "direct", title: "mock upstream alone", port: mock.port, pids: () => [mock.pid], ...plain },
    ...gateways,
  ];
  for (const target of targets) await verify(target);
  tell("Warming up …");
  const warming = [chatMany, streamShort, streamFull];
  await warmUpInTurns(bench, warming, gateways, options.warmUpPasses);
  const samples = await measure(bench, {
    scenarios: coreScenarios,
    targets,
    rounds: options.rounds,
    onRound: (round) => tell(`Round ${round} of ${options.rounds} …`),
  });
  const rss: CoreResult["rss"][number][] = [];
  // Both ids of Headrace are of one process.
  for (const { name, title, pids } of gateways.filter(
    (target) => target.name !== "renamed" && target.pids().length > 0,
  )) {
    const isHeadrace = name === "same";
    const afterLoad = await settledRssBytes(pids(), options.settleMs);
    rss.push({ title: isHeadrace ? "Headrace" : title, idle: isHeadrace ? idle : null, afterLoad });
  }
  return {
    targets: targets.map(({ name, title }) => ({ name, title })),
    baseline: nginx ? "nginx" : "direct",
    samples,
    rss,
    startMs,
    audit: await audit("Core comparison", mock, "core", headrace.booked),
  };
}
