// Measures targets against each other: every round takes each scenario with each target in turn, so that what else the
// machine does meets all of them alike.
import type { LoadGenerator } from "./load.ts";
import type { LoadJob, LoadResult } from "./load-generator.ts";
import type { MockUpstream } from "./mock.ts";
import { cpuMicros, cpuSnapshot } from "./process-usage.ts";
import { chatRequest, eventsOf, type StreamPlan } from "./workload.ts";

/** Something that answers chat requests by way of the mock upstream. */
export interface Target {
  name: string;
  title: string;
  port: number;
  key: string;
  /** The id that clients ask for. */
  model: string;
  pids(): readonly number[];
  /** How long after an answer it may still work on it: what it writes late is its cost as well. */
  settleMs: number;
}

export interface Scenario {
  name: string;
  title: string;
  connections: number;
  /** What costs are counted by. */
  unit: "request" | "event";
  /** Undefined: an answer in one piece. */
  plan(windowMs: number): StreamPlan | undefined;
  /** Whether each connection asks just once: the stream takes its own time. */
  once: boolean;
}

export const scenarios: readonly Scenario[] = [
  {
    name: "chat-1",
    title: "Chat, not streamed, 1 connection",
    connections: 1,
    unit: "request",
    plan: () => undefined,
    once: false,
  },
  {
    name: "chat-64",
    title: "Chat, not streamed, 64 connections",
    connections: 64,
    unit: "request",
    plan: () => undefined,
    once: false,
  },
  {
    name: "stream-paced",
    title: "Streams, 32 at once, a chunk every 5 ms each",
    connections: 32,
    unit: "event",
    // Twice as long, so that the request itself hardly counts.
    plan: (windowMs) => ({ chunks: Math.round((2 * windowMs) / 5), paceMs: 5 }),
    once: true,
  },
  {
    name: "stream-full",
    title: "Streams, 8 at once, 500 chunks each at full speed",
    connections: 8,
    unit: "event",
    plan: () => ({ chunks: 500, paceMs: 0 }),
    once: false,
  },
];

/** One scenario with one target in one round. */
export interface Sample extends LoadResult {
  round: number;
  scenario: string;
  target: string;
  /** Processor time of the target's processes, in microseconds. */
  cpuMicros: number;
  /** Connections that the target opened to the mock upstream meanwhile. */
  upstreamConnections: number;
}

export interface Measurement {
  load: LoadGenerator;
  mock: MockUpstream;
  targets: readonly Target[];
  rounds: number;
  windowMs: number;
  onRound(round: number): void;
}

/** Bounds a window in count as well; no target comes near it. */
const maxRequests = 200_000;

/** Samples of all rounds, after one that warms up and does not count. */
export async function measure(measurement: Measurement): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (let round = 0; round <= measurement.rounds; round++) {
    measurement.onRound(round);
    // Back and forth, so that no target is always the one behind the most expensive one.
    const targets = round % 2 === 0 ? measurement.targets : measurement.targets.toReversed();
    for (const scenario of scenarios) {
      for (const target of targets) {
        const sample = await sampleOf(measurement, scenario, target, round);
        if (round > 0) samples.push(sample);
      }
    }
  }
  return samples;
}

async function sampleOf(
  { load, mock, windowMs }: Measurement,
  scenario: Scenario,
  target: Target,
  round: number,
): Promise<Sample> {
  const plan = scenario.plan(windowMs);
  const job: LoadJob = {
    port: target.port,
    key: target.key,
    body: chatRequest(target.model, plan),
    connections: scenario.connections,
    windowMs,
    maxRequests: scenario.once ? scenario.connections : maxRequests,
    events: plan ? eventsOf(plan) : 0,
  };
  const countersBefore = await mock.counters();
  const cpuBefore = cpuSnapshot(target.pids());
  const result = await load.run(job);
  await Bun.sleep(target.settleMs);
  const cpu = cpuMicros(cpuBefore, cpuSnapshot(target.pids()));
  const counters = await mock.counters();
  const reached = counters.requests - countersBefore.requests;
  const errors = { ...result.errors };
  if (reached !== result.requests) errors[`${reached} requests at the upstream for ${result.requests} answers`] = 1;
  return {
    ...result,
    errors,
    round,
    scenario: scenario.name,
    target: target.name,
    cpuMicros: cpu,
    upstreamConnections: counters.connections - countersBefore.connections,
  };
}

/** Throws unless the target answers as it must: a fast wrong answer is no figure. */
export async function verify(target: Target): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${target.port}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${target.key}`, "content-type": "application/json" },
    body: chatRequest(target.model),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${target.title} answered ${response.status}: ${text}`);
  const { model } = JSON.parse(text) as { model?: unknown };
  if (model !== target.model) throw new Error(`${target.title} answered for the model ${model}, not ${target.model}.`);
}
