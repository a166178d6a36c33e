// Tests routing: health with one test request after a suspension, load by weight and pace, and limited preference for
// warm prompts.
import { beforeEach, describe, expect, test } from "bun:test";
import { type ManualClock, manualClock } from "../../../tests/support/manual-clock.ts";
import { seeded } from "../../../tests/support/seeded.ts";
import type { Engine } from "../../domain/models/engine.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import { PromptPrefix } from "./prompt-prefix.ts";
import { Router, type Workload } from "./route.ts";

let clock: ManualClock;
let router: Router;

beforeEach(() => {
  clock = manualClock();
  router = new Router(clock, seeded(7));
});

function engine(name: string): Engine {
  return {
    name,
    redact: (text) => text,
    send: () => Promise.reject(new Error("not used")),
    models: async () => [],
  };
}

function modelOn(...deployments: [engine: Engine, weight: number][]): Model {
  return {
    id: "m",
    created: 0,
    ownedBy: "",
    capabilities: undefined,
    context: undefined,
    environments: ["dev"],
    price: undefined,
    deployments: deployments.map(([deployed, weight]) => ({ engine: deployed, model: "m", weight })),
  };
}

const small: Workload = { promptTokens: 10, maxCompletionTokens: undefined, width: 1, prefix: () => undefined };
const ordered = (model: Model, workload = small) => router.order(model, workload);
const order = (model: Model, workload = small) => ordered(model, workload).map(({ engine: { name } }) => name);
const begin = (model: Model, name: string, workload = small) => router.begin(at(model, name), model, workload);

function at({ deployments }: Model, name: string): Deployment {
  const deployment = deployments.find((one) => one.engine.name === name);
  if (!deployment) throw new Error(`no deployment ${name}`);
  return deployment;
}

/** Counts how often each engine comes first for consecutive requests that end immediately. */
function firsts(model: Model, rounds: number): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let i = 0; i < rounds; i++) {
    const name = order(model)[0] ?? "";
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

const [a, b, c] = [engine("a"), engine("b"), engine("c")];

test("orders every deployment exactly once", () => {
  const model = modelOn([a, 1], [b, 5], [c, 2]);
  router.unreachable(a);
  expect(order(model).sort()).toEqual(["a", "b", "c"]);
});

test("rests an engine that lists no models in time and is answering no request", () => {
  const model = modelOn([a, 1], [b, 1], [c, 1]);
  const sinceMs = clock.monotonicMs();
  const [, answering, answered] = [begin(model, "a"), begin(model, "b"), begin(model, "c")];
  answering.answering();
  clock.advance(5_000);
  answered.answering();
  answered.end();
  for (const one of [a, b, c]) router.silent(one, sinceMs + 1_000);
  expect([a, b, c].map((one) => router.engineState(one))).toEqual(["resting", "ok", "ok"]);
  answering.end();
  router.silent(b, sinceMs + 1_000);
  expect(router.engineState(b)).toBe("resting");
});

test("reports an engine as resting while one of its models rests, until it works again", () => {
  const model = modelOn([a, 1], [b, 1]);
  expect([router.rests(a), router.rests(b)]).toEqual([false, false]);
  router.failed(at(model, "a"), "deployment");
  router.unreachable(b);
  expect([router.rests(a), router.rests(b)]).toEqual([true, true]);
  clock.advance(120_000);
  expect([router.rests(a), router.rests(b)]).toEqual([true, true]);
  router.succeeded(at(model, "a"));
  router.reached(b);
  expect([router.rests(a), router.rests(b)]).toEqual([false, false]);
});

test("leaves drained deployments out of the order until they are no longer drained", () => {
  router.drained = new Set(["a"]);
  expect(order(modelOn([a, 1]))).toEqual([]);
  router.unreachable(b);
  expect(order(modelOn([a, 1], [b, 1]))).toEqual(["b"]);
  router.drained = new Set();
  expect(order(modelOn([a, 1], [b, 1]))).toEqual(["a", "b"]);
});

test("returns an empty order for a model without deployments", () => {
  expect(order(modelOn())).toEqual([]);
});

describe("load", () => {
  test("prefers the engine with the least work for its weight", () => {
    const model = modelOn([a, 1], [b, 1]);
    const one = begin(model, "a");
    expect(order(model)).toEqual(["b", "a"]);
    begin(model, "b");
    begin(model, "b");
    expect(order(model)).toEqual(["a", "b"]);
    one.end();
    one.end();
    expect(order(model)).toEqual(["a", "b"]);
  });

  test("spreads concurrent requests by weight", () => {
    const model = modelOn([a, 3], [b, 1]);
    const counts = { a: 0, b: 0 };
    for (let i = 0; i < 400; i++) {
      const first = order(model)[0] as "a" | "b";
      counts[first]++;
      begin(model, first);
    }
    expect(counts.a).toBeGreaterThan(295);
    expect(counts.a).toBeLessThan(305);
  });

  test("spreads sequential requests by weight", () => {
    const counts = firsts(modelOn([a, 3], [b, 1]), 8_000);
    // 6,000 expected; 200 are five standard deviations.
    expect(counts["a"]).toBeGreaterThan(5_800);
    expect(counts["a"]).toBeLessThan(6_200);
  });

  test("weighs one long request like many short ones, and drops its prompt once the answer begins", () => {
    const model = modelOn([a, 1], [b, 1]);
    const long = begin(model, "a", { ...small, promptTokens: 50_000 });
    for (let i = 0; i < 10; i++) begin(model, "b");
    expect(order(model)).toEqual(["b", "a"]);
    long.answering();
    long.answering();
    expect(order(model)).toEqual(["a", "b"]);
  });

  test("gives a deployment that is three times slower a third of the work, as measured", () => {
    const model = modelOn([a, 1], [b, 1]);
    for (let i = 0; i < 20; i++) {
      const [fast, slow] = [begin(model, "a"), begin(model, "b")];
      clock.advance(100);
      fast.end(200);
      clock.advance(200);
      slow.end(200);
    }
    const counts = { a: 0, b: 0 };
    for (let i = 0; i < 400; i++) {
      const first = order(model)[0] as "a" | "b";
      counts[first]++;
      begin(model, first);
    }
    expect(counts.a / counts.b).toBeGreaterThan(2.7);
    expect(counts.a / counts.b).toBeLessThan(3.3);
  });

  test("prefers the operator's weights to all measurements", () => {
    const model = modelOn([a, 1], [b, 4]);
    for (let i = 0; i < 20; i++) {
      const [fast, slow] = [begin(model, "a"), begin(model, "b")];
      clock.advance(100);
      fast.end(200);
      clock.advance(900);
      slow.end(200);
    }
    const counts = { a: 0, b: 0 };
    for (let i = 0; i < 500; i++) {
      const first = order(model)[0] as "a" | "b";
      counts[first]++;
      begin(model, first);
    }
    expect(counts.b).toBeGreaterThan(395);
    expect(counts.b).toBeLessThan(405);
  });

  test("counts the load that a server reports for ten seconds", () => {
    const model = modelOn([a, 1], [b, 1]);
    router.said(a, { running: 5, waiting: 2, cacheUse: null, cacheHits: null });
    begin(model, "b");
    begin(model, "b");
    expect(order(model)).toEqual(["b", "a"]);
    clock.advance(10_001);
    expect(order(model)).toEqual(["a", "b"]);
    expect(router.loadOf(a)).toBeUndefined();
  });
});

describe("health", () => {
  const rest = (model: Model) => {
    const startedMs = clock.monotonicMs();
    while (router.resting(at(model, "a"))) clock.advance(100);
    return clock.monotonicMs() - startedMs;
  };

  test("rests an engine that fails each trial for two seconds, then longer, up to about a minute", () => {
    const model = modelOn([a, 1_000], [b, 1]);
    const rests: number[] = [];
    for (let failures = 0; failures < 8; failures++) {
      router.unreachable(a);
      expect(order(model)).toEqual(["b", "a"]);
      rests.push(rest(model) / 1_000);
      expect(router.claim(at(model, "a"))).toBe(true);
    }
    for (const [index, seconds] of [2, 4, 8, 16, 32, 60, 60, 60].entries()) {
      expect(rests[index]).toBeGreaterThan(seconds * 0.89);
      expect(rests[index]).toBeLessThan(seconds * 1.11 + 0.1);
    }
  });

  test("sends one trial request after a rest, and the others elsewhere until its outcome", () => {
    const model = modelOn([a, 1_000], [b, 1]);
    const broken = at(model, "a");
    router.failed(broken, "deployment");
    expect(router.claim(broken)).toBe(false);
    rest(model);
    expect(router.state(broken)).toBe("ready");
    expect(router.claim(broken)).toBe(true);
    expect([router.claim(broken), router.state(broken), order(model)[0]]).toEqual([false, "trying", "b"]);
    // The client of the test request left.
    router.release(broken);
    expect(router.claim(broken)).toBe(true);
    // The test request had no verdict for a minute.
    clock.advance(60_000);
    expect(router.claim(broken)).toBe(true);
    router.succeeded(broken);
    expect([router.state(broken), router.claim(broken)]).toEqual(["ok", false]);
  });

  test("does not prolong a rest for failures of requests sent before it", () => {
    const model = modelOn([a, 1], [b, 1]);
    for (let i = 0; i < 50; i++) router.failed(at(model, "a"), "deployment");
    expect(rest(model)).toBeLessThan(2_300);
  });

  test("lengthens the rests of an engine that alternates, and starts over once it worked long enough", () => {
    const model = modelOn([a, 1], [b, 1]);
    const rests: number[] = [];
    for (let i = 0; i < 5; i++) {
      router.unreachable(a);
      rests.push(Math.round(rest(model) / 1_000));
      router.succeeded(at(model, "a"));
      clock.advance(500);
    }
    expect(rests).toEqual([...rests].sort((one, two) => one - two));
    expect(rests.at(-1)).toBeGreaterThan(27);
    clock.advance(60_000);
    router.unreachable(a);
    expect(rest(model)).toBeLessThan(2_300);
  });

  test("ends a rest at the first success", () => {
    const model = modelOn([a, 1_000_000], [b, 1]);
    router.failed(at(model, "a"), "deployment");
    expect(order(model)[0]).toBe("b");
    router.succeeded(at(model, "a"));
    expect(router.resting(at(model, "a"))).toBe(false);
  });

  test("gives a recovered engine less than its share at first", () => {
    const model = modelOn([a, 1], [b, 1]);
    router.unreachable(a);
    rest(model);
    router.reached(a);
    const counts = { a: 0, b: 0 };
    for (let i = 0; i < 110; i++) {
      const first = order(model)[0] as "a" | "b";
      counts[first]++;
      begin(model, first);
    }
    expect(counts.a).toBeLessThan(15);
    expect(counts.a).toBeGreaterThan(5);
    clock.advance(30_000);
    for (let i = 0; i < 90; i++) begin(model, order(model)[0] as "a" | "b");
    expect(router.requestsAt(a)).toBeGreaterThan(90);
  });

  test("tries the least busy deployment if all rest", () => {
    const model = modelOn([a, 1], [b, 1]);
    router.unreachable(a);
    router.unreachable(b);
    begin(model, "a");
    expect(order(model)).toEqual(["b", "a"]);
    expect(router.works(model)).toBe(false);
  });

  test("rests an unreachable server for all of its models, and a failing model alone", () => {
    const onOther = { ...modelOn([a, 9], [c, 1]), id: "other" };
    const other = { ...onOther, deployments: onOther.deployments.map((one) => ({ ...one, model: "other" })) };
    router.failed(at(modelOn([a, 1], [b, 1]), "a"), "deployment");
    expect(router.resting(at(other, "a"))).toBe(false);
    router.failed(at(modelOn([a, 1], [b, 1]), "a"), "engine");
    expect(order(other)).toEqual(["c", "a"]);
  });

  test("keeps a deployment's rest when the catalog is rebuilt", () => {
    router.failed(at(modelOn([a, 1], [b, 1]), "a"), "deployment");
    expect(router.resting(at(modelOn([a, 1], [b, 1]), "a"))).toBe(true);
  });

  test("reports the length of a rest once, and ends the rest when the engine is reached", () => {
    const received: [Engine, number][] = [];
    router.onRest = (engineAtRest, restMs) => void received.push([engineAtRest, restMs]);
    router.unreachable(a);
    router.unreachable(a);
    expect(received).toHaveLength(1);
    expect(received[0]?.[0]).toBe(a);
    clock.advance(received[0]?.[1] ?? 0);
    expect(router.engineState(a)).toBe("ready");
    router.reached(a);
    expect(router.engineState(a)).toBe("ok");
  });
});

describe("warm prompts", () => {
  /**
   * Returns a prompt of `blocks` blocks of 512 characters. The first `shared` blocks are the same for all prompts whose
   * names are equal before the `/`.
   */
  function prompt(name: string, blocks: number, shared = blocks): Workload {
    const prefix = new PromptPrefix();
    for (let i = 0; i < blocks; i++) {
      prefix.hashes.push(Bun.hash.xxHash32(i < shared ? `${name.split("/")[0]} ${i}` : `${name} ${i}`));
      prefix.ends.push((i + 1) * 512);
    }
    prefix.length = blocks * 512;
    prefix.origin = Bun.hash.xxHash32(name);
    return { promptTokens: blocks * 128, maxCompletionTokens: 100, width: 1, prefix: () => prefix };
  }

  const eight = modelOn(...Array.from({ length: 8 }, (_, i): [Engine, number] => [engine(`e${i}`), 1]));
  const send = (workload: Workload) => {
    const name = order(eight, workload)[0] ?? "";
    return { name, assignment: begin(eight, name, workload) };
  };

  test("sends each turn of a conversation to the deployment of the turn before, amid other requests", () => {
    for (let chat = 0; chat < 20; chat++) {
      const places = new Set<string>();
      for (let turn = 1; turn <= 6; turn++) {
        const { name, assignment } = send(prompt(`chat ${chat}`, turn * 4));
        places.add(name);
        const between = Array.from({ length: 5 }, (_, i) => send(prompt(`other ${chat} ${turn} ${i}`, 4)));
        assignment.end();
        for (const { assignment: other } of between) other.end();
      }
      expect(places.size).toBe(1);
    }
  });

  test("bounds the load of each deployment, however many requests share a prompt", () => {
    const places = new Map<string, number>();
    for (let i = 0; i < 80; i++) {
      const { name } = send(prompt(`tools/${i}`, 101, 100));
      places.set(name, (places.get(name) ?? 0) + 1);
    }
    expect(Math.max(...places.values())).toBeLessThanOrEqual(10 * 1.25 + 2);
    expect(places.size).toBeGreaterThan(4);
  });

  test("sends an unknown conversation to the same deployment from every gateway", () => {
    const other = new Router(clock, seeded(8));
    for (let chat = 0; chat < 50; chat++) {
      const workload = prompt(`chat ${chat}`, 8);
      expect(other.order(eight, workload)[0]?.engine.name).toBe(order(eight, workload)[0] ?? "");
    }
  });

  test("sends a turn to the deployment where another gateway sent the turns before", () => {
    const gateways = [1, 2, 3].map((seed) => {
      const gateway = new Router(clock, seeded(seed));
      gateway.gateways = () => 3;
      return gateway;
    });
    const [first, ...others] = gateways;
    if (!first) throw new Error("no gateway");
    // All gateways know the beginning that all conversations share, on every deployment.
    for (const gateway of gateways) {
      for (const one of eight.deployments) gateway.begin(one, eight, prompt("app", 4)).end();
    }
    for (let chat = 0; chat < 30; chat++) {
      const turn = (blocks: number) => {
        const workload = prompt(`app/${chat}`, blocks, 4);
        const prefix = workload.prefix();
        if (prefix) Object.assign(prefix, { originEnd: 5 * 512, continues: blocks > 5 });
        return workload;
      };
      const [place] = first.order(eight, turn(5));
      if (!place) throw new Error("no deployment");
      first.begin(place, eight, turn(5)).end();
      for (const other of others) expect(other.order(eight, turn(9))[0]).toBe(place);
    }
  });

  test("reads the prefix of a prompt only if there is a choice of deployments", () => {
    let asked = 0;
    const workload = { ...small, prefix: () => void asked++ };
    const model = modelOn([a, 1], [b, 1]);
    ordered(modelOn([a, 1]), workload);
    router.begin(at(model, "a"), modelOn([a, 1]), workload).end();
    router.unreachable(b);
    ordered(model, workload);
    router.begin(at(model, "a"), model, workload).end();
    expect(asked).toBe(0);
    router.reached(b);
    ordered(model, workload);
    expect(asked).toBe(1);
  });
});
