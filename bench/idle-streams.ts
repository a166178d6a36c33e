// Measures what an open, silent stream costs in memory, and what a new request costs beside many of them.
import { readFileSync } from "node:fs";
import { headraceSettleMs, type Surroundings } from "./core.ts";
import { type Audit, audit } from "./governance.ts";
import { startHeadrace } from "./headrace.ts";
import { jobOf, type Sample, sampleOf, type Target, verify, warmUp } from "./measure.ts";
import { findNginx, startNginx } from "./nginx.ts";
import { settledRssBytes } from "./process-usage.ts";
import { chatMany, chatOne, type Scenario, streamFull } from "./scenarios.ts";
import { upstreamModel } from "./workload.ts";

export interface IdleStreamsPoint {
  target: string;
  title: string;
  open: number;
  rssBytes: number;
  /** More than with none open, for each. */
  bytesPerStream: number;
  /** Requests at one connection meanwhile. */
  request: Sample;
}

export interface IdleStreamsResult {
  /** Memory before the first stream, by target. */
  before: Record<string, number>;
  points: readonly IdleStreamsPoint[];
  audit: Audit;
  faults: readonly string[];
}

const counts = [1, 1_000, 9_000];
/** Descriptors that a process needs beside two for each stream. */
const otherDescriptors = 500;

const held: Scenario = {
  ...streamFull,
  name: "stream-held",
  title: "Streams, silent",
  plan: () => ({ chunks: 1, paceMs: 0, hold: true }),
};

export async function measureIdleStreams({
  bench,
  options,
  placement,
  tell,
}: Surroundings): Promise<IdleStreamsResult> {
  const { mock } = bench;
  const prefix = placement.gateway;
  const most = Math.floor((hardDescriptorLimit() - otherDescriptors) / 2);
  const fitting = counts.filter((count) => count <= most);
  const faults =
    fitting.length < counts.length
      ? [`${counts.at(-1)} idle streams need a hard limit of ${2 * (counts.at(-1) ?? 0) + otherDescriptors} open files`]
      : [];
  await using stack = new AsyncDisposableStack();
  const nginxFile = findNginx();
  const nginx =
    nginxFile === undefined
      ? undefined
      : stack.use(await startNginx(nginxFile, mock.port, { prefix, connections: 2 * most }));
  const start = { upstreamPort: mock.port, prefix, source: "streams", maxConcurrency: 20_000 };
  const headrace = stack.use(await startHeadrace(start));
  const own = { key: headrace.key, model: upstreamModel, settleMs: headraceSettleMs };
  const targets: Target[] = [
    ...(nginx ? [{ ...own, name: "nginx", title: "nginx", port: nginx.port, pids: () => nginx.pids }] : []),
    { ...own, name: "same", title: "Headrace", port: headrace.port, pids: headrace.pids },
  ];
  const before: Record<string, number> = {};
  const points: IdleStreamsPoint[] = [];
  for (const target of targets) {
    tell(`streams: ${target.title} …`);
    await verify(target);
    await warmUp(bench, [chatMany, streamFull], target, options.warmUpPasses);
    const rssBefore = await settledRssBytes(target.pids(), options.settleMs);
    before[target.name] = rssBefore;
    for (const open of fitting) {
      const begun = await bench.load.hold({ ...jobOf(held, target, bench.windowMs), connections: open });
      if (begun !== open) faults.push(`streams, ${target.name}: ${begun} of ${open} opened`);
      const rssBytes = await settledRssBytes(target.pids(), options.settleMs);
      const request = await sampleOf(bench, chatOne, target, 1);
      await bench.load.release();
      points.push({
        target: target.name,
        title: target.title,
        open,
        rssBytes,
        bytesPerStream: (rssBytes - rssBefore) / open,
        request,
      });
      // Waits until the target has seen them all go.
      await Bun.sleep(options.settleMs);
    }
  }
  return {
    before,
    points,
    audit: await audit("Idle streams", mock, "streams", headrace.booked, { tokens: false }),
    faults,
  };
}

function hardDescriptorLimit(): number {
  const [, hard = "0"] = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
  return hard === "unlimited" ? 1_000_000 : Number(hard);
}
