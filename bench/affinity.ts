// `bun bench/affinity.ts`: what routing by warm prompts saves, in a simulation with published shapes of traffic.
import { parseArgs } from "node:util";
import { policyNames } from "./affinity/policies.ts";
import { usualReplica } from "./affinity/replica.ts";
import { type Outcome, simulate } from "./affinity/simulate.ts";
import { exponential, Ids, readTrace, type Session, type Shape, shapes } from "./affinity/traffic.ts";

const { values } = parseArgs({
  options: {
    replicas: { type: "string", default: "2,4,8,16,32,64" },
    shapes: { type: "string", default: shapes.map(({ name }) => name).join(",") },
    gateways: { type: "string", default: "1" },
    minutes: { type: "string", default: "15" },
    load: { type: "string", default: "1" },
    seed: { type: "string", default: "1" },
    trace: { type: "string" },
    stretch: { type: "string", default: "1" },
    policies: { type: "string", default: policyNames.join(",") },
    json: { type: "boolean", default: false },
  },
});

export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

function sessionsOf(shape: Shape, replicas: number, durationMs: number, seed: number, load: number): Session[] {
  const random = seededRandom(seed);
  const ids = new Ids();
  const sessions: Session[] = [];
  for (let atMs = 0; atMs < durationMs; ) {
    atMs += exponential(1_000 / (shape.sessionsPerSecond * load * replicas), random);
    sessions.push({ ...shape.session(random, ids), startMs: atMs });
  }
  return sessions;
}

const durationMs = Number(values.minutes) * 60_000;
const results: { shape: string; replicas: number; policy: string; outcome: Outcome }[] = [];
for (const replicas of values.replicas.split(",").map(Number)) {
  const wanted: [string, readonly Session[]][] = values.trace
    ? [["trace", readTrace(await Bun.file(values.trace).text(), Number(values.stretch))]]
    : shapes
        .filter(({ name }) => values.shapes.split(",").includes(name))
        .map((shape) => [
          shape.name,
          sessionsOf(shape, replicas, durationMs, Number(values.seed), Number(values.load)),
        ]);
  for (const [shape, sessions] of wanted) {
    let least: Outcome | undefined;
    for (const policy of policyNames.filter((name) => values.policies.split(",").includes(name))) {
      const began = performance.now();
      const outcome = simulate(
        {
          sessions,
          replicas,
          gateways: Number(values.gateways),
          settings: usualReplica,
          durationMs,
          random: seededRandom(Number(values.seed) + 1),
        },
        policy,
      );
      if (policy === "least requests") least = outcome;
      results.push({ shape, replicas, policy, outcome });
      const cut = least ? 1 - outcome.recomputed / least.recomputed : 0;
      console.error(
        [
          shape.padEnd(7),
          String(replicas).padStart(2),
          policy.padEnd(24),
          `n ${outcome.requests}`,
          `mean ${Math.round(outcome.promptTokens / outcome.requests)}`,
          `computed ${(outcome.computed * 100).toFixed(1)}%`,
          `re ${(outcome.recomputed * 100).toFixed(1)}%`,
          `cut ${(cut * 100).toFixed(0)}%`,
          `imb ${outcome.imbalance.toFixed(2)}`,
          `work ${outcome.workImbalance.toFixed(2)}`,
          `ttft ${outcome.firstTokenP50.toFixed(0)}/${outcome.firstTokenP99.toFixed(0)}`,
          `busy ${(outcome.busy * 100).toFixed(0)}%`,
          `${((performance.now() - began) / 1000).toFixed(1)}s`,
        ].join("  "),
      );
    }
  }
}
if (values.json) console.log(JSON.stringify(results, null, 2));
