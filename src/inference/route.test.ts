// Routing: by load and weight, engines that just failed last, none forgotten.
import { beforeEach, describe, expect, test } from "bun:test";
import type { Engine } from "../domain/engine.ts";
import type { Model } from "../domain/model.ts";
import { Router } from "./route.ts";

const now = { ms: 0 };
let router: Router;

beforeEach(() => {
  now.ms = 0;
  router = new Router({ nowSeconds: () => 0, monotonicMs: () => now.ms });
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

const order = (model: Model) => router.order(model).map((deployment) => deployment.engine.name);

/** How often each engine comes first when requests come one after the other and end at once. */
function firsts(model: Model, rounds: number): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let i = 0; i < rounds; i++) {
    const name = order(model)[0] ?? "";
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

const [a, b, c] = [engine("a"), engine("b"), engine("c")];

test("every deployment is in the order, once, so that each may be tried", () => {
  const model = modelOn([a, 1], [b, 5], [c, 2]);
  router.failed(a);
  expect(order(model).sort()).toEqual(["a", "b", "c"]);
});

test("what is drained is in no order, alone or among others, until it no longer is", () => {
  router.drained = new Set(["a"]);
  expect(order(modelOn([a, 1]))).toEqual([]);
  router.failed(b);
  expect(order(modelOn([a, 1], [b, 1]))).toEqual(["b"]);
  router.drained = new Set();
  expect(order(modelOn([a, 1], [b, 1]))).toEqual(["a", "b"]);
});

test("a model without deployments has an empty order", () => {
  expect(order(modelOn())).toEqual([]);
});

describe("load", () => {
  test("the engine with the least work for its weight comes first", () => {
    const model = modelOn([a, 1], [b, 1]);
    const end = router.begin(a);
    expect(order(model)).toEqual(["b", "a"]);
    router.begin(b);
    router.begin(b);
    expect(order(model)).toEqual(["a", "b"]);
    end();
    end();
    expect(order(model)).toEqual(["a", "b"]);
  });

  test("requests at once are spread by weight", () => {
    const model = modelOn([a, 3], [b, 1]);
    const counts = { a: 0, b: 0 };
    for (let i = 0; i < 400; i++) {
      const [first] = router.order(model);
      if (!first) throw new Error("no deployment");
      counts[first.engine.name as "a" | "b"]++;
      router.begin(first.engine);
    }
    expect(counts.a).toBeGreaterThan(295);
    expect(counts.a).toBeLessThan(305);
  });

  test("requests one after the other are spread by weight as well", () => {
    const counts = firsts(modelOn([a, 3], [b, 1]), 8_000);
    // 6,000 expected; 200 are five standard deviations.
    expect(counts["a"]).toBeGreaterThan(5_800);
    expect(counts["a"]).toBeLessThan(6_200);
  });

  test("an end that is called twice counts once", () => {
    const model = modelOn([a, 1], [b, 1]);
    const end = router.begin(a);
    end();
    end();
    router.begin(b);
    expect(order(model)).toEqual(["a", "b"]);
  });
});

describe("health", () => {
  test("an engine that failed is tried last for two seconds, then longer after each failure, never over a minute", () => {
    const model = modelOn([a, 1_000], [b, 1]);
    const rests: number[] = [];
    for (let failures = 0; failures < 8; failures++) {
      router.failed(a);
      const startedMs = now.ms;
      while (order(model)[0] === "b" && now.ms - startedMs < 100_000) {
        router.begin(b)();
        now.ms += 500;
        // Among idle engines a weight of 1,000 wins nearly always: three tries make it certain enough.
        if (now.ms - startedMs >= 2_000 && [0, 1, 2].some(() => order(model)[0] === "a")) break;
      }
      rests.push(Math.round((now.ms - startedMs) / 1_000));
    }
    expect(rests).toEqual([2, 4, 8, 16, 32, 60, 60, 60]);
  });

  test("a success ends the rest at once and forgets the failures", () => {
    const model = modelOn([a, 1_000_000], [b, 1]);
    for (let i = 0; i < 5; i++) router.failed(a);
    expect(order(model)[0]).toBe("b");
    router.succeeded(a);
    expect(order(model)[0]).toBe("a");
    router.failed(a);
    now.ms += 2_000;
    expect(order(model)[0]).toBe("a");
  });

  test("where all rest, the least busy one is tried all the same", () => {
    const model = modelOn([a, 1], [b, 1]);
    router.failed(a);
    router.failed(b);
    router.begin(a);
    expect(order(model)).toEqual(["b", "a"]);
  });

  test("what one model learns of an engine holds for every model on it", () => {
    router.failed(a);
    router.begin(b);
    expect(order(modelOn([a, 1], [b, 1]))).toEqual(["b", "a"]);
    expect(order(modelOn([a, 9], [c, 1]))).toEqual(["c", "a"]);
  });
});
