// The state of upstreams over several replicas: a later success at one replica ends the failing state at all.
import { expect, test } from "bun:test";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import type { Engine } from "../../domain/models/engine.ts";
import type { AttemptReport, Fault } from "../../domain/usage/attempt-health.ts";
import { Router } from "../routing/route.ts";
import { UpstreamHealths } from "./upstream-health.ts";

const log = { info: () => {}, warn: () => {}, error: () => {} };
const fault: Fault = { cause: "server_error", status: 500, message: null };

const engine: Engine = {
  ...{ name: "up", maxConcurrency: undefined, models: async () => [], redact: (text: string) => text },
  send: () => Promise.reject(new Error("not used")),
};

/** Makes two replicas. `exchange` has each read the reports of the other, twice, as an answer needs a question. */
function makeReplicas() {
  const clock = manualClock();
  const sources = { known: () => [{ name: engine.name, engine }] };
  const makeReplica = () => {
    const seen: { others: readonly AttemptReport[] } = { others: [] };
    const router = new Router(clock);
    const healths = new UpstreamHealths({ router, sources, others: () => seen.others, clock, log });
    const attempt = (worked: number, failed: number, model = "m") =>
      router.addAttempts(engine, model, { worked, failed, failures: failed, last: failed > 0 ? fault : null });
    return { seen, healths, attempt };
  };
  const [a, b] = [makeReplica(), makeReplica()];
  const exchange = () => {
    for (let round = 0; round < 2; round++) {
      [a.seen.others, b.seen.others] = [b.healths.reports(), a.healths.reports()];
    }
  };
  return { clock, a, b, exchange };
}

test("ends the failing state of an idle replica when another one has later successes", () => {
  const { clock, a, b, exchange } = makeReplicas();
  a.attempt(0, 5);
  exchange();
  for (const { healths } of [a, b]) {
    expect(healths.of(engine)).toMatchObject({ isFailing: true, models: ["m"] });
    expect(healths.ofModel(engine, "m").isFailing).toBe(true);
  }
  clock.advance(60_000);
  b.attempt(500, 0);
  exchange();
  for (const { healths } of [a, b]) {
    expect(healths.of(engine)).toMatchObject({ isFailing: false, models: [], since: null, attempts: 505, failed: 5 });
    expect(healths.ofModel(engine, "m")).toMatchObject({ isFailing: false, since: null });
    expect(healths.failing()).toEqual([]);
  }
  expect(a.healths.seen()).toMatchObject([{ isOwn: false, isProven: true }]);

  // The state must not come back when the successes leave the window of two minutes.
  clock.advance(300_000);
  exchange();
  for (const { healths } of [a, b]) expect(healths.of(engine)).toMatchObject({ isFailing: false, models: [] });
});

test("stays failing while another replica has successes at about the same time", () => {
  const { clock, a, b, exchange } = makeReplicas();
  a.attempt(0, 5);
  clock.advance(20_000);
  b.attempt(500, 0);
  exchange();
  for (const { healths } of [a, b]) expect(healths.of(engine)).toMatchObject({ isFailing: true, models: ["m"] });
});

test("reports failing models before others, if there are more than fit", () => {
  const { a, b, exchange } = makeReplicas();
  for (let model = 0; model < 300; model++) a.attempt(1, 0, `well-${model}`);
  a.attempt(0, 5, "bad");
  exchange();
  expect(a.healths.reports()).toHaveLength(200);
  expect(b.healths.of(engine).models).toEqual(["bad"]);
});
