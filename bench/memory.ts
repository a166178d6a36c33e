// Measures the memory of the gateway through a day of its own: idle, under load, a minute after it, and with long bodies.
import { headraceSettleMs, type Surroundings } from "./core.ts";
import { type Audit, audit } from "./governance.ts";
import { startHeadrace } from "./headrace.ts";
import { jobOf, type Target, verify } from "./measure.ts";
import { type Memory, memoryOf } from "./process-usage.ts";
import { chatMany, type Scenario, streamFull } from "./scenarios.ts";
import { upstreamModel } from "./workload.ts";

export interface MemoryPoint {
  name: "idle" | "load" | "after";
  title: string;
  memory: Memory;
}

export interface MemoryResult {
  /** The version of the Node that ran the launcher. */
  node: string;
  /** Resident bytes of the launcher, which are part of all figures; 0 where it became the server. */
  launcherBytes: number;
  points: readonly MemoryPoint[];
  bodies: {
    count: number;
    bytes: number;
    /** Resident bytes that each takes beyond a stream with a short body. */
    rssBytesEach: number;
  };
  requests: number;
  audit: Audit;
  errors: Readonly<Record<string, number>>;
}

/** A start is over, and what only it needed given back. */
const idleAfterMs = 15_000;
const loadMs = 20_000;
const restMs = 60_000;
const pollEveryMs = 100;
const longBodies = 16;
const longBodyBytes = 1_000_000;

const held: Scenario = {
  ...streamFull,
  name: "body-held",
  title: "Long bodies of streams that are silent",
  plan: () => ({ chunks: 1, paceMs: 0, hold: true }),
};

export async function measureMemory({ bench, options, placement, tell }: Surroundings): Promise<MemoryResult> {
  const { mock, load } = bench;
  const start = { upstreamPort: mock.port, prefix: placement.gateway, source: "silent", byLauncher: true };
  await using headrace = await startHeadrace(start);
  const target: Target = {
    name: "memory",
    title: "Headrace",
    port: headrace.port,
    // A key of its own would have been made over the API, whose modules an idle gateway has not loaded.
    key: headrace.firstKey,
    model: upstreamModel,
    pids: headrace.pids,
    settleMs: headraceSettleMs,
  };
  tell("memory: idle …");
  await Bun.sleep(idleAfterMs);
  /** The most resident bytes while streams with such bodies are open. */
  const maxWhileHeld = async (bodyBytes: number) => {
    const most = watchPeak(() => memoryOf(headrace.pids()));
    const begun = await load.hold({
      ...jobOf({ ...held, bodyBytes }, target, bench.windowMs),
      connections: longBodies,
    });
    if (begun !== longBodies) throw new Error(`${begun} of ${longBodies} streams with ${bodyBytes} bytes began`);
    await Bun.sleep(options.settleMs);
    await load.release();
    return most.stop().rss;
  };
  const points: MemoryPoint[] = [
    { name: "idle", title: `Idle, ${idleAfterMs / 1000} s after the start`, memory: memoryOf(headrace.pids()) },
  ];
  const launcherBytes = memoryOf(headrace.launcherPids()).rss;
  await verify(target);
  tell("memory: under load …");
  const peak = watchPeak(() => memoryOf(headrace.pids()));
  const { requests, errors } = await load.run({ ...jobOf(chatMany, target, loadMs), maxRequests: 10_000_000 });
  points.push({ name: "load", title: `Most within ${loadMs / 1000} s of 64 connections`, memory: peak.stop() });
  tell("memory: a minute after the load …");
  await Bun.sleep(restMs);
  points.push({ name: "after", title: `${restMs / 1000} s after the load`, memory: memoryOf(headrace.pids()) });
  tell("memory: long bodies …");
  const short = await maxWhileHeld(1_000);
  const long = await maxWhileHeld(longBodyBytes);
  return {
    node: nodeVersion(),
    launcherBytes,
    points,
    bodies: { count: longBodies, bytes: longBodyBytes, rssBytesEach: (long - short) / longBodies },
    requests,
    audit: await audit("Memory", mock, "silent", headrace.booked, { tokens: false }),
    errors,
  };
}

/** The moment with the most resident memory until `stop`. */
function watchPeak(look: () => Memory): { stop(): Memory } {
  let most = look();
  const timer = setInterval(() => {
    const now = look();
    if (now.rss > most.rss) most = now;
  }, pollEveryMs);
  return {
    stop() {
      clearInterval(timer);
      return most;
    },
  };
}

function nodeVersion(): string {
  return Bun.spawnSync(["node", "--version"]).stdout.toString().trim();
}
