// Measures targets against each other: every round takes each scenario with each target in turn, so that what else the
// machine does meets all of them alike.
import type { LoadGenerator } from "./load.ts";
import type { LoadJob, LoadResult } from "./load-generator.ts";
import type { MockUpstream } from "./mock.ts";
import { cpuMicros, cpuSnapshot } from "./process-usage.ts";
import type { Scenario } from "./scenarios.ts";
import { toolRequest } from "./tool-workload.ts";
import { chatRequest, eventsOf, messagesRequest, responsesRequest, type StreamPlan } from "./workload.ts";

/** A format in which targets are asked: the path, and the body of a request. */
const formats = {
  chat: { path: "/v1/chat/completions", body: chatRequest },
  responses: { path: "/v1/responses", body: responsesRequest },
  messages: { path: "/v1/messages", body: messagesRequest },
  tool: { path: "/mcp", body: toolRequest },
} as const;
export type Format = keyof typeof formats;

/** Something that answers chat requests by way of the mock upstream, or calls of tools by way of a server of these. */
export interface Target {
  name: string;
  title: string;
  port: number;
  /** 127.0.0.1 unless said otherwise. */
  hostname?: string;
  /** Chat completions unless said otherwise. */
  format?: Format;
  /** That of its format unless said otherwise. */
  path?: string;
  key: string;
  headers?: Readonly<Record<string, string>>;
  /** The id that clients ask for; of calls the name of the tool. */
  model: string;
  /** The id that answers must have; undefined: any. */
  answersAs?: string;
  keysFile?: string;
  models?: readonly string[];
  /** Ids of its processes; empty where they are not known: then nothing is told about its processor time. */
  pids(): readonly number[];
  /** Milliseconds for which it may still work on an answer: what it writes late is its cost as well. */
  settleMs: number;
}

/** One scenario with one target in one round. */
export interface Sample extends LoadResult {
  round: number;
  scenario: string;
  target: string;
  /** Processor time of the target's processes, in microseconds; null where they are not known. */
  cpuMicros: number | null;
  /** Microseconds in which the target's threads could have run, and something else had the processor. */
  waitedMicros: number;
  /** Connections that were opened to the mock upstream meanwhile. */
  upstreamConnections: number;
}

export interface Bench {
  load: LoadGenerator;
  mock: MockUpstream;
  windowMs: number;
}

export interface Rounds {
  scenarios: readonly Scenario[];
  targets: readonly Target[];
  rounds: number;
  onRound(round: number): void;
}

/** Bounds a window in count as well; no target comes near it. */
const maxRequests = 400_000;

/** Samples of all rounds. */
export async function measure(bench: Bench, { scenarios, targets, rounds, onRound }: Rounds): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (let round = 1; round <= rounds; round++) {
    onRound(round);
    // Back and forth, so that no target is always the one behind the most expensive one.
    const order = round % 2 === 0 ? targets : targets.toReversed();
    for (const scenario of scenarios) {
      for (const target of order) {
        if (target.name !== "direct" || scenario.direct) samples.push(await sampleOf(bench, scenario, target, round));
      }
    }
  }
  return samples;
}

export async function sampleOf(bench: Bench, scenario: Scenario, target: Target, round: number): Promise<Sample> {
  const { load, mock } = bench;
  const job = jobOf(scenario, target, bench.windowMs);
  const before = await upstreamTotals(mock);
  const cpuBefore = cpuSnapshot(target.pids());
  const result = await load.run(job);
  await Bun.sleep(target.settleMs);
  const pids = target.pids();
  const cpuAfter = cpuSnapshot(pids);
  const after = await upstreamTotals(mock);
  const reached = after.requests - before.requests;
  const errors = { ...result.errors };
  if (reached !== result.requests) errors[`${reached} requests at the upstream for ${result.requests} answers`] = 1;
  return {
    ...result,
    errors,
    round,
    scenario: scenario.name,
    target: target.name,
    cpuMicros: pids.length === 0 ? null : cpuMicros(cpuBefore, cpuAfter),
    waitedMicros: (cpuAfter.waitedNanos - cpuBefore.waitedNanos) / 1000,
    upstreamConnections: after.connections - before.connections,
  };
}

export function jobOf(scenario: Scenario, target: Target, windowMs: number): LoadJob {
  const plan = scenario.plan(windowMs);
  return {
    port: target.port,
    ...(target.hostname === undefined ? {} : { hostname: target.hostname }),
    path: pathOf(target),
    ...(target.headers === undefined ? {} : { headers: target.headers }),
    ...(target.keysFile === undefined ? {} : { keysFile: target.keysFile }),
    ...(target.models === undefined ? {} : { models: target.models }),
    key: target.key,
    body: bodyOf(target, plan, scenario.bodyBytes),
    connections: scenario.connections,
    windowMs,
    maxRequests: scenario.once ? scenario.connections : maxRequests,
    // What is translated has events of its own beside those with text.
    events: plan ? (target.format === undefined || target.format === "chat" ? eventsOf(plan) : undefined) : 0,
  };
}

function pathOf({ format = "chat", path = formats[format].path }: Target): string {
  return path;
}

function bodyOf({ format = "chat", model }: Target, plan?: StreamPlan, bodyBytes?: number): string {
  return formats[format].body(model, plan, bodyBytes);
}

/** Throws unless the target answers as it must: a fast wrong answer is no figure. */
export async function verify(target: Target): Promise<void> {
  const { hostname = "127.0.0.1" } = target;
  const response = await fetch(`http://${hostname}:${target.port}${pathOf(target)}`, {
    method: "POST",
    headers: { ...target.headers, authorization: `Bearer ${target.key}`, "content-type": "application/json" },
    body: bodyOf(target),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${target.title} answered ${response.status}: ${text}`);
  const { model, error } = JSON.parse(text) as { model?: unknown; error?: unknown };
  // Calls of tools fail with this status as well. Responses have a member that is null.
  if (error != null) throw new Error(`${target.title} answered: ${text}`);
  if (target.answersAs !== undefined && model !== target.answersAs) {
    throw new Error(`${target.title} answered for the model ${model}, not ${target.answersAs}.`);
  }
}

/**
 * Load until the runtime's compiler is done with the target: until a pass costs no less than the best one before it, or
 * `maxPasses` are over. Gateways run for months, so their first seconds are no figure.
 */
export async function warmUp(
  bench: Bench,
  scenarios: readonly Scenario[],
  target: Target,
  maxPasses: number,
): Promise<void> {
  const short = { ...bench, windowMs: Math.min(bench.windowMs, warmUpWindowMs) };
  const best = new Map<Scenario, number>();
  for (let pass = 1; pass <= maxPasses; pass++) {
    let fell = false;
    for (const scenario of scenarios) {
      const cost = costOf(await sampleOf(short, scenario, target, 0));
      const before = best.get(scenario) ?? Number.POSITIVE_INFINITY;
      if (cost < before * stillFalling) fell = true;
      best.set(scenario, Math.min(before, cost));
    }
    if (pass >= minPasses && !fell) return;
  }
}

/** Warms up several by turns: who has nothing to do for 20 seconds lets go of its compiled code, and would begin cold. */
export async function warmUpInTurns(
  bench: Bench,
  scenarios: readonly Scenario[],
  targets: readonly Target[],
  passes: number,
): Promise<void> {
  for (let pass = 0; pass < passes; pass++) {
    for (const target of targets) await warmUp(bench, scenarios, target, 1);
  }
}

const warmUpWindowMs = 1_000;
const minPasses = 3;
const stillFalling = 0.97;

/** Microseconds for each request: of processor time, or of waiting where that is not known. */
function costOf({ cpuMicros: cpu, seconds, requests }: Sample): number {
  return (cpu ?? seconds * 1e6) / Math.max(requests, 1);
}

async function upstreamTotals(mock: MockUpstream): Promise<{ connections: number; requests: number }> {
  const { connections, sources } = await mock.counters();
  return { connections, requests: Object.values(sources).reduce((sum, { requests }) => sum + requests, 0) };
}
