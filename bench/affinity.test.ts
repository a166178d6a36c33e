// The simulation in short: what is warm is used again, at the price of little balance. Seeded, so each run is the same.
import { expect, test } from "bun:test";
import type { PolicyName } from "./affinity/policies.ts";
import { seededRandom } from "./affinity/random.ts";
import { usualReplica } from "./affinity/replica.ts";
import { type Outcome, simulate } from "./affinity/simulate.ts";
import { sessionsOf, shapes } from "./affinity/traffic.ts";

const [replicas, durationMs] = [4, 300_000];

function outcomes(name: string, gateways = 1): Record<"least" | "ours", Outcome> {
  const shape = shapes.find((one) => one.name === name);
  if (!shape) throw new Error(`no shape ${name}`);
  const sessions = sessionsOf(shape, { perSecond: replicas, durationMs, random: seededRandom(1) });
  const run = (policy: PolicyName) =>
    simulate({ sessions, replicas, gateways, settings: usualReplica, durationMs, random: seededRandom(2) }, policy);
  return { least: run("least requests"), ours: run("headrace") };
}

test.each([
  ["chat", 0.6],
  ["shared", 0.6],
  ["agents", 0.5],
] as const)("recomputes %s prompts by at least %d less than least-requests routing", (name, cut) => {
  const { least, ours } = outcomes(name);
  expect(least.requests).toBeGreaterThan(150);
  expect(least.recomputed).toBeGreaterThan(0.1);
  expect(1 - ours.recomputed / least.recomputed).toBeGreaterThan(cut);
  expect(ours.firstTokenP50).toBeLessThan(least.firstTokenP50);
  if (name !== "agents") expect(ours.workImbalance).toBeLessThan(1.3);
});

test("saves much recomputation with three gateways that do not see each other's requests", () => {
  const { least, ours } = outcomes("chat", 3);
  expect(1 - ours.recomputed / least.recomputed).toBeGreaterThan(0.35);
});
