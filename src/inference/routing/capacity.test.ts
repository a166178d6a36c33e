// Tests slots at engines and the queue for them: fair, bounded, with a deadline, and without losing requests or slots.
import { beforeEach, describe, expect, test } from "bun:test";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { systemClock } from "../../base/clock.ts";
import type { GatewayError } from "../../base/errors.ts";
import type { Engine } from "../../domain/models/engine.ts";
import type { Deployment } from "../../domain/models/model.ts";
import type { Priority } from "../../domain/models/policies/priority.ts";
import { Capacity, type CapacityBounds } from "./capacity.ts";
import type { Slot, SlotRequest } from "./gate.ts";
import { Router } from "./route.ts";

let router: Router;
let capacity: Capacity;
let bounds: CapacityBounds;

beforeEach(() => {
  router = new Router(systemClock);
  bounds = { maxWaiting: 512, maxWaitMs: 5_000 };
  capacity = new Capacity({ clock: systemClock, router, bounds: () => bounds });
});

const never = new Cancellation();

function engineWith(settings: Partial<Pick<Engine, "maxConcurrency" | "concurrency" | "onDemand">>): Engine {
  return {
    name: "e",
    redact: (text) => text,
    send: () => Promise.reject(new Error("not used")),
    models: async () => [],
    ...settings,
  };
}

const on = (...engines: Engine[]): Deployment[] => engines.map((engine) => ({ engine, model: "m", weight: 1 }));

function requestOf(accountId: string, width = 1, priority: Priority = "normal"): SlotRequest {
  const whose = { priority, accountId, partyId: `key of ${accountId}` };
  return { ...whose, operation: "chat", stream: true, width, model: "public-name" };
}

/** Takes a slot immediately or after waiting. */
async function enter(candidates: readonly Deployment[], request: SlotRequest, cancellation = never): Promise<Slot> {
  const place =
    capacity.take(candidates, request) ?? (await capacity.wait(candidates, request, capacity.arrive(), cancellation));
  if (!place) throw new Error("the engines changed");
  return place;
}

/** Does what `enter` does, and notes when the request was let in. */
function watch(candidates: readonly Deployment[], request: SlotRequest, cancellation = never) {
  const entry = { place: undefined as Slot | undefined, error: undefined as GatewayError | undefined };
  const settled = enter(candidates, request, cancellation).then(
    (place) => {
      entry.place = place;
    },
    (error: GatewayError) => {
      entry.error = error;
    },
  );
  return Object.assign(entry, { settled });
}

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Returns the figures of the engine's only limit. */
function figures(engine: Engine) {
  const { limit, inFlight, waiting } = capacity.figures(engine)[0] ?? { limit: 0, inFlight: 0, waiting: 0 };
  return { limit, inFlight, waiting };
}

describe("slots", () => {
  test("admits as many requests as the operator set, then none until a slot is released", async () => {
    const engine = engineWith({ maxConcurrency: 2 });
    const [first] = [capacity.take(on(engine), requestOf("a")), capacity.take(on(engine), requestOf("a"))];
    expect(capacity.take(on(engine), requestOf("b"))).toBeUndefined();
    const next = watch(on(engine), requestOf("b"));
    expect(figures(engine)).toEqual({ limit: 2, inFlight: 2, waiting: 1 });
    first?.release();
    first?.release();
    await settle();
    expect(next.place).toBeDefined();
    expect(figures(engine)).toEqual({ limit: 2, inFlight: 2, waiting: 0 });
  });

  test("counts slots by model and width if the engine reports its concurrency, embeddings apart", () => {
    const engine = engineWith({
      concurrency: (model, operation) => (operation === "embedding" ? 2 : model === "m" ? 4 : 1),
    });
    expect(capacity.take(on(engine), requestOf("a", 3))).toBeDefined();
    expect(capacity.take(on(engine), requestOf("a", 2))).toBeUndefined();
    expect(capacity.take(on(engine), requestOf("a", 1))).toBeDefined();
    expect(capacity.take([{ engine, model: "other", weight: 1 }], requestOf("a"))).toBeDefined();
    expect(capacity.take(on(engine), { ...requestOf("a"), operation: "embedding" })).toBeDefined();
    expect(capacity.figures(engine)).toEqual([
      { model: "m", limit: 4, inFlight: 4, waiting: 0 },
      { model: "other", limit: 1, inFlight: 1, waiting: 0 },
      { model: "m", limit: 2, inFlight: 1, waiting: 0 },
    ]);
  });

  test("gives a request wider than the engine all slots, and lets none overtake it", async () => {
    const engine = engineWith({ concurrency: () => 3 });
    const first = capacity.take(on(engine), requestOf("a"));
    const wide = watch(on(engine), requestOf("b", 100));
    const narrow = watch(on(engine), requestOf("c"));
    await settle();
    expect([wide.place, narrow.place]).toEqual([undefined, undefined]);
    first?.release();
    await settle();
    expect(figures(engine).inFlight).toBe(3);
    expect(narrow.place).toBeUndefined();
    wide.place?.release();
    await narrow.settled;
    expect(figures(engine)).toEqual({ limit: 3, inFlight: 1, waiting: 0 });
  });

  test("admits the requests behind a wide one when the wide one leaves", async () => {
    const engine = engineWith({ concurrency: () => 3 });
    capacity.take(on(engine), requestOf("a"));
    const client = new Cancellation();
    const wide = watch(on(engine), requestOf("b", 3), client);
    const narrow = watch(on(engine), requestOf("c"));
    client.cancel(new Error("left"));
    await Promise.all([wide.settled, narrow.settled]);
    expect(String(wide.error)).toContain("left");
    expect(narrow.place).toBeDefined();
  });

  test("admits the requests behind a wide one when its deadline passes", async () => {
    const engine = engineWith({ concurrency: () => 3 });
    capacity.take(on(engine), requestOf("a"));
    bounds.maxWaitMs = 20;
    const wide = watch(on(engine), requestOf("b", 3));
    bounds.maxWaitMs = 2_000;
    const narrow = watch(on(engine), requestOf("c"));
    await Promise.all([wide.settled, narrow.settled]);
    expect([wide.error?.code, narrow.error, narrow.place !== undefined]).toEqual([
      "service_unavailable",
      undefined,
      true,
    ]);
  });

  test("admits the requests behind a wide one when it gets its slot at another engine", async () => {
    const [one, two] = [engineWith({ concurrency: () => 3 }), engineWith({ concurrency: () => 3 })];
    const first = capacity.take(on(one), requestOf("a"));
    capacity.take(on(two), requestOf("a"));
    const wide = watch(on(one, two), requestOf("b", 3));
    const narrow = watch(on(two), requestOf("c"));
    await settle();
    expect([wide.place, narrow.place]).toEqual([undefined, undefined]);
    first?.release();
    await settle();
    expect(wide.place?.deployment.engine).toBe(one);
    expect(narrow.place?.deployment.engine).toBe(two);
  });

  test("admits a burst at an engine of unknown concurrency before its first answers", async () => {
    const engine = engineWith({});
    const burst = Array.from({ length: 75 }, () => watch(on(engine), requestOf("a")));
    await settle();
    expect(figures(engine)).toEqual({ limit: 64, inFlight: 64, waiting: 11 });
    await Promise.all(burst.map(({ settled }) => settled));
    expect(figures(engine)).toEqual({ limit: 80, inFlight: 75, waiting: 0 });
  });

  test("uses an engine's raised concurrency when the next request comes", async () => {
    let places = 1;
    const engine = engineWith({ concurrency: () => places });
    capacity.take(on(engine), requestOf("a"));
    const before = watch(on(engine), requestOf("a"));
    await settle();
    places = 3;
    const next = watch(on(engine), requestOf("a"));
    await settle();
    expect([before.place !== undefined, next.place !== undefined]).toEqual([true, true]);
  });

  test("uses an engine's raised concurrency at the next answer", async () => {
    let places = 1;
    const engine = engineWith({ concurrency: () => places });
    const first = capacity.take(on(engine), requestOf("a"));
    const others = [1, 2, 3].map(() => watch(on(engine), requestOf("a")));
    places = 3;
    first?.answered();
    await settle();
    expect(others.map(({ place }) => place !== undefined)).toEqual([true, true, false]);
  });
});

describe("several candidates", () => {
  test("takes the first slot that is free among several engines and leaves the other queues", async () => {
    const [one, two] = [engineWith({ maxConcurrency: 1 }), engineWith({ maxConcurrency: 1 })];
    capacity.take(on(one), requestOf("a"));
    const second = capacity.take(on(one, two), requestOf("a"));
    expect(second?.deployment.engine).toBe(two);
    const waiting = watch(on(one, two), requestOf("b"));
    expect([figures(one).waiting, figures(two).waiting]).toEqual([1, 1]);
    second?.release();
    await settle();
    expect(waiting.place?.deployment.engine).toBe(two);
    expect([figures(one).waiting, figures(two).waiting]).toEqual([0, 0]);
  });

  test("sends a failed deployment nothing during its rest, then one request, then the others", async () => {
    const clock = manualClock();
    router = new Router(clock, () => 0.5);
    capacity = new Capacity({ clock: systemClock, router, bounds: () => bounds });
    const [busy, broken] = on(engineWith({ maxConcurrency: 1 }), engineWith({}));
    if (!busy || !broken) throw new Error("no deployment");
    capacity.take([busy], requestOf("a"));
    router.failed(broken, "engine");
    expect(capacity.take([busy, broken], requestOf("a"))).toBeUndefined();
    clock.advance(2_000);
    const trial = capacity.take([busy, broken], requestOf("a"));
    expect([trial?.deployment, trial?.isTrial]).toEqual([broken, true]);
    const waiting = [1, 2].map(() => watch([busy, broken], requestOf("a")));
    await settle();
    expect(waiting.map(({ place }) => place)).toEqual([undefined, undefined]);
    router.succeeded(broken);
    trial?.answered();
    await settle();
    expect(waiting.map(({ place }) => [place?.deployment, place?.isTrial])).toEqual([
      [broken, false],
      [broken, false],
    ]);
  });

  test("admits a waiting request soon after an engine's rest ends, without a released slot", async () => {
    const atRest = new Set<Engine>();
    capacity = new Capacity({
      clock: systemClock,
      router: { resting: ({ engine }) => atRest.has(engine), claim: () => false },
      bounds: () => ({ maxWaiting: 512, maxWaitMs: 3_000 }),
    });
    const [broken, busy] = [engineWith({ maxConcurrency: 9 }), engineWith({ maxConcurrency: 1 })];
    atRest.add(broken);
    expect(capacity.take(on(busy, broken), requestOf("a"))?.deployment.engine).toBe(busy);
    const waiting = [1, 2].map(() => watch(on(busy, broken), requestOf("a")));
    // The suspension ends only after it was checked once more.
    setTimeout(() => atRest.delete(broken), 300);
    await Promise.all(waiting.map(({ settled }) => settled));
    expect(waiting.map(({ place }) => place?.deployment.engine)).toEqual([broken, broken]);
  });

  test("uses resting engines as usual if all engines rest", () => {
    const candidates = on(engineWith({}), engineWith({}));
    for (const deployment of candidates) router.failed(deployment, "engine");
    for (let i = 0; i < 10; i++) expect(capacity.take(candidates, requestOf("a"))).toBeDefined();
  });
});

describe("fairness", () => {
  test("serves a single request next beside a flood of 200 requests, every time", async () => {
    const serviceMs = 8;
    const engine = engineWith({ maxConcurrency: 4 });
    const order: string[] = [];
    const work = async (accountId: string) => {
      const place = await enter(on(engine), requestOf(accountId));
      order.push(accountId);
      await Bun.sleep(serviceMs);
      place.answered();
      place.release();
    };
    const flood = Array.from({ length: 200 }, () => work("flood"));
    const overtaken: number[] = [];
    for (let i = 0; i < 10; i++) {
      await Bun.sleep(15);
      const before = order.length;
      await work("b");
      overtaken.push(order.indexOf("b", before) - before);
    }
    await Promise.all(flood);
    // Each request of account `b` is served next, whenever it arrives.
    expect(overtaken).toEqual(Array(10).fill(0));
    expect(order).toHaveLength(210);
    expect(figures(engine)).toEqual({ limit: 4, inFlight: 0, waiting: 0 });
  });

  test("drops the newest request of the longest queue for an account with fewer requests", async () => {
    bounds.maxWaiting = 10;
    const engine = engineWith({ maxConcurrency: 1 });
    const first = capacity.take(on(engine), requestOf("flood"));
    const flood = Array.from({ length: 11 }, () => watch(on(engine), requestOf("flood")));
    await settle();
    expect(flood.map(({ error }) => error?.code)).toEqual([...Array(10).fill(undefined), "service_unavailable"]);
    const other = Array.from({ length: 6 }, () => watch(on(engine), requestOf("b")));
    await settle();
    expect(flood.filter(({ error }) => error)).toHaveLength(6);
    expect(other.map(({ error }) => error !== undefined)).toEqual([false, false, false, false, false, true]);
    expect(figures(engine).waiting).toBe(10);
    first?.release();
    await settle();
    expect(other[0]?.place).toBeDefined();
  });
});

describe("refusals", () => {
  test("refuses a request at its deadline with a time to retry", async () => {
    bounds.maxWaitMs = 30;
    const engine = engineWith({ maxConcurrency: 1 });
    capacity.take(on(engine), requestOf("a"));
    const startedMs = performance.now();
    const late = watch(on(engine), requestOf("b"));
    await late.settled;
    expect(performance.now() - startedMs).toBeGreaterThan(25);
    expect(late.error).toMatchObject({ code: "service_unavailable", retryAfterSeconds: 5 });
    expect(late.error?.message).toBe("The model `public-name` has no free capacity now. Retry in 5 s.");
    expect(figures(engine)).toEqual({ limit: 1, inFlight: 1, waiting: 0 });
  });

  test("refuses a request at once if its expected wait is too long, with that wait as advice", async () => {
    const now = { ms: 0 };
    capacity = new Capacity({
      clock: { nowSeconds: () => 0, monotonicMs: () => now.ms },
      router,
      bounds: () => ({ maxWaiting: 512, maxWaitMs: 30_000 }),
    });
    const engine = engineWith({ maxConcurrency: 2 });
    // Answers take ten seconds each, two at a time, so a slot becomes free every five seconds on average.
    for (let i = 0; i < 3; i++) {
      const places = [capacity.take(on(engine), requestOf("a")), capacity.take(on(engine), requestOf("a"))];
      now.ms += 10_000;
      for (const place of places) place?.answered();
      for (const place of places) place?.release();
    }
    capacity.take(on(engine), requestOf("a"));
    capacity.take(on(engine), requestOf("a"));
    const client = new Cancellation();
    const waiting = Array.from({ length: 8 }, () => watch(on(engine), requestOf("a"), client));
    await settle();
    expect(waiting.map(({ error }) => error !== undefined)).toEqual([...Array(7).fill(false), true]);
    expect(waiting[7]?.error?.message).toBe(
      "The model `public-name` has no free capacity now (7 requests wait). Retry in 40 s.",
    );
    expect(waiting[7]?.error?.retryAfterSeconds).toBe(40);
    // A request of another account would be served second, long before the deadline.
    const other = watch(on(engine), requestOf("b"), client);
    await settle();
    expect(other.error).toBeUndefined();
    client.cancel();
    await Promise.all([...waiting, other].map(({ settled }) => settled));
  });

  test("does not queue a request again after its deadline", async () => {
    const engine = engineWith({ maxConcurrency: 1 });
    capacity.take(on(engine), requestOf("a"));
    const turn = { order: 1, deadlineMs: systemClock.monotonicMs() - 1 };
    await expect(capacity.wait(on(engine), requestOf("a"), turn, never)).rejects.toMatchObject({
      code: "service_unavailable",
    });
  });

  test("refuses at once if the queue is configured as empty", async () => {
    bounds.maxWaiting = 0;
    const engine = engineWith({ maxConcurrency: 1 });
    capacity.take(on(engine), requestOf("a"));
    const refused = watch(on(engine), requestOf("b"));
    await refused.settled;
    expect(refused.error?.code).toBe("service_unavailable");
  });
});

describe("leaks", () => {
  test("leaves nothing behind after thousands of waiting clients leave, and serves the next one", async () => {
    bounds.maxWaiting = 5_000;
    const engine = engineWith({ maxConcurrency: 1 });
    const first = capacity.take(on(engine), requestOf("a"));
    const clients = Array.from({ length: 5_000 }, () => new Cancellation());
    const gone = clients.map((client, index) => watch(on(engine), requestOf(`account ${index % 50}`), client));
    await settle();
    expect(figures(engine).waiting).toBe(5_000);
    for (const client of clients) client.cancel(new Error("left"));
    await Promise.all(gone.map(({ settled }) => settled));
    expect(gone.every(({ error }) => String(error).includes("left"))).toBe(true);
    expect(figures(engine)).toEqual({ limit: 1, inFlight: 1, waiting: 0 });
    const next = watch(on(engine), requestOf("b"));
    first?.release();
    await next.settled;
    next.place?.release();
    expect(figures(engine)).toEqual({ limit: 1, inFlight: 0, waiting: 0 });
  });

  test("does not queue a cancelled request", async () => {
    const engine = engineWith({ maxConcurrency: 1 });
    capacity.take(on(engine), requestOf("a"));
    const cancelled = new Cancellation();
    cancelled.cancel(new Error("gone"));
    const gone = watch(on(engine), requestOf("a"), cancelled);
    await gone.settled;
    expect([String(gone.error), figures(engine).waiting]).toEqual(["Error: gone", 0]);
  });

  test("never exceeds the limit in flight, and ends at zero, in random runs", async () => {
    bounds = { maxWaiting: 20, maxWaitMs: 15 };
    const limits = [3, 5];
    const engines = limits.map((limit) => engineWith({ concurrency: () => limit }));
    let [served, refused] = [0, 0];
    const request = async (index: number) => {
      await Bun.sleep(Math.random() * 80);
      const client = new Cancellation();
      if (index % 7 === 0) setTimeout(() => client.cancel(), Math.random() * 20);
      const candidates = index % 3 === 0 ? on(...engines) : on(engines[index % 2] ?? engineWith({}));
      try {
        const place = await enter(candidates, requestOf(`account ${index % 5}`, 1 + (index % 4)), client);
        served++;
        for (const [which, engine] of engines.entries()) {
          expect(figures(engine).inFlight).toBeLessThanOrEqual(limits[which] ?? 0);
          expect(figures(engine).waiting).toBeLessThanOrEqual(20);
        }
        await Bun.sleep(Math.random() * 3);
        if (index % 5 === 0) place.refused();
        else place.answered();
        place.release();
      } catch (error) {
        if (!client.cancelled) expect(error).toMatchObject({ code: "service_unavailable" });
        refused++;
      }
    };
    await Promise.all(Array.from({ length: 600 }, (_, index) => request(index)));
    // The numbers depend on the processor, but some requests are served and some are refused.
    expect([served > 0, refused > 0]).toEqual([true, true]);
    expect(engines.map(figures)).toEqual(limits.map((limit) => ({ limit, inFlight: 0, waiting: 0 })));
  });
});

test("does not wait for room at an engine that has no request left", async () => {
  const engine = engineWith({});
  const place = await enter(on(engine), requestOf("a"));
  place.release();
  expect(await capacity.waitForRoom(place.gate, capacity.arrive(), never)).toBe("idle");
});

describe("an engine whose server is started on demand", () => {
  test("holds requests until the on-demand server is open, reports them, then serves them in order", async () => {
    const received: [number, number][] = [];
    const onDemand = {
      open: false,
      demand: (inFlight: number, waiting: number) => void received.push([inFlight, waiting]),
    };
    const engine = engineWith({ maxConcurrency: 1, onDemand });
    const [first, second] = [watch(on(engine), requestOf("a")), watch(on(engine), requestOf("b"))];
    await Bun.sleep(0);
    expect([received.at(-1), first.place, second.place]).toEqual([[0, 2], undefined, undefined]);
    expect(capacity.waitingByAccount(engine)).toEqual(
      new Map([
        ["a", 1],
        ["b", 1],
      ]),
    );
    onDemand.open = true;
    capacity.opened(engine);
    await first.settled;
    expect([received.at(-1), second.place]).toEqual([[1, 1], undefined]);
    onDemand.open = false;
    first.place?.release();
    await Bun.sleep(0);
    expect([received.at(-1), second.place]).toEqual([[0, 1], undefined]);
    onDemand.open = true;
    capacity.opened(engine);
    await second.settled;
    second.place?.release();
    expect(received.at(-1)).toEqual([0, 0]);
  });

  test('refuses a request that waited too long with "not loaded", and reports an empty queue', async () => {
    bounds = { maxWaiting: 512, maxWaitMs: 20 };
    let waiting = 0;
    const onDemand = {
      open: false,
      demand(_: number, count: number) {
        waiting = count;
      },
    };
    const late = watch(on(engineWith({ onDemand })), requestOf("a"));
    await late.settled;
    expect(late.error?.message).toBe("The model `public-name` is not loaded yet. Retry in 5 s.");
    expect(waiting).toBe(0);
  });
});

describe("the idle lane", () => {
  /** Returns a request of the idle lane that counts how often its slot was wanted. */
  function idle(accountId: string) {
    const request = { ...requestOf(accountId), wanted: 0, onWanted: () => void request.wanted++ };
    return request;
  }

  test("gives the idle lane free slots, and none while a live request waits", async () => {
    const engine = engineWith({ maxConcurrency: 2 });
    const live = capacity.take(on(engine), requestOf("a"));
    expect(capacity.idleSlots(on(engine), idle("b"))).toBe(1);
    const line = idle("b");
    expect(capacity.take(on(engine), line)).toBeDefined();
    expect(capacity.take(on(engine), idle("b"))).toBeUndefined();
    const next = watch(on(engine), requestOf("a"));
    expect([capacity.idleSlots(on(engine), idle("b")), line.wanted]).toEqual([0, 1]);
    live?.release();
    await next.settled;
    expect(next.place).toBeDefined();
    expect(capacity.take(on(engine), idle("b"))).toBeUndefined();
  });

  test("interrupts one idle request for each waiting live request, the newest first, once each", async () => {
    const engine = engineWith({ maxConcurrency: 3 });
    const lines = [idle("a"), idle("b"), idle("c")];
    const places = lines.map((line) => capacity.take(on(engine), line));
    const first = watch(on(engine), requestOf("l"));
    expect(lines.map(({ wanted }) => wanted)).toEqual([0, 0, 1]);
    const second = watch(on(engine), requestOf("l"));
    expect(lines.map(({ wanted }) => wanted)).toEqual([0, 1, 1]);
    places[2]?.release();
    places[1]?.release();
    await Promise.all([first.settled, second.settled]);
    expect([first.place !== undefined, second.place !== undefined]).toEqual([true, true]);
    expect(figures(engine)).toEqual({ limit: 3, inFlight: 3, waiting: 0 });
    // The idle lane is asked for another slot only when another request waits.
    const third = watch(on(engine), requestOf("l"));
    expect(lines.map(({ wanted }) => wanted)).toEqual([1, 1, 1]);
    first.place?.release();
    await third.settled;
    expect(third.place).toBeDefined();
  });

  test("interrupts as many idle requests as a wide live request needs, one after the other", async () => {
    const engine = engineWith({ concurrency: () => 3 });
    for (let n = 0; n < 3; n++) {
      const line: SlotRequest = { ...requestOf("a"), onWanted: () => setImmediate(() => place?.release()) };
      const place = capacity.take(on(engine), line);
    }
    const wide = watch(on(engine), requestOf("l", 2));
    await settle();
    await settle();
    await settle();
    expect(wide.place).toBeDefined();
    expect(figures(engine)).toEqual({ limit: 3, inFlight: 3, waiting: 0 });
  });

  test("interrupts idle requests for live requests even where no queue is allowed", async () => {
    bounds.maxWaiting = 0;
    const engine = engineWith({ maxConcurrency: 1 });
    const line = idle("a");
    const place = capacity.take(on(engine), line);
    const live = watch(on(engine), requestOf("l"));
    expect(line.wanted).toBe(1);
    place?.release();
    await live.settled;
    expect([live.place !== undefined, live.error]).toEqual([true, undefined]);
    const late = watch(on(engine), requestOf("l"));
    await late.settled;
    expect(late.error?.code).toBe("service_unavailable");
  });

  test("keeps idle requests behind all live requests and outside their queue", async () => {
    bounds.maxWaiting = 1;
    const engine = engineWith({ maxConcurrency: 1 });
    const held = capacity.take(on(engine), requestOf("a"));
    const line = watch(on(engine), idle("b"));
    const live = watch(on(engine), requestOf("c"));
    expect([figures(engine).waiting, capacity.waiting, capacity.waitingByModel.get("public-name")]).toEqual([1, 1, 1]);
    held?.release();
    await live.settled;
    expect([live.place !== undefined, line.place]).toEqual([true, undefined]);
    live.place?.release();
    await line.settled;
    expect(line.place).toBeDefined();
  });

  test("shares the idle lane fairly between accounts, whatever their live requests", async () => {
    const engine = engineWith({ maxConcurrency: 3 });
    const live = [1, 2, 3].map(() => capacity.take(on(engine), requestOf("busy")));
    const many = [1, 2, 3].map(() => watch(on(engine), idle("many")));
    const few = watch(on(engine), idle("busy"));
    for (const place of live) place?.release();
    await Promise.all([few.settled, many[0]?.settled, many[1]?.settled]);
    expect([few.place !== undefined, many.filter(({ place }) => place).length]).toEqual([true, 2]);
  });

  test("limits the idle lane by its own number, or by the concurrency that the server reports", () => {
    const bounded = new Capacity({ clock: systemClock, router, bounds: () => bounds, maxIdle: () => 1 });
    const [unsaid, said] = [engineWith({}), engineWith({ maxConcurrency: 2 })];
    expect([unsaid, said].map((engine) => bounded.idleSlots(on(engine), idle("a")))).toEqual([1, 2]);
    expect(bounded.take(on(unsaid), idle("a"))).toBeDefined();
    expect([bounded.take(on(unsaid), idle("a")), bounded.idleSlots(on(unsaid), idle("a"))]).toEqual([undefined, 0]);
    expect(bounded.take(on(unsaid), requestOf("a"))).toBeDefined();
  });

  test("lets only one idle request wait for an on-demand server, while no live request does", () => {
    const demands: [number, number][] = [];
    const onDemand = {
      open: false,
      demand: (inFlight: number, waiting: number) => void demands.push([inFlight, waiting]),
    };
    const engine = engineWith({ onDemand });
    expect(capacity.idleSlots(on(engine), idle("a"))).toBe(1);
    void watch(on(engine), idle("a"));
    expect([demands.at(-1), capacity.idleSlots(on(engine), idle("a"))]).toEqual([[0, 1], 0]);
  });
});

describe("slots reserved for high priorities", () => {
  const high = (width = 1) => requestOf("vip", width, "high");

  test("reserves as many slots as high priorities needed lately and one more", () => {
    const engine = engineWith({ maxConcurrency: 8 });
    const held = [capacity.take(on(engine), high()), capacity.take(on(engine), high())];
    for (const place of held) place?.release();
    for (let i = 0; i < 5; i++) expect(capacity.take(on(engine), requestOf("a"))).toBeDefined();
    expect(capacity.take(on(engine), requestOf("a"))).toBeUndefined();
    expect(capacity.take(on(engine), requestOf("b", 1, "low"))).toBeUndefined();
    for (let i = 0; i < 3; i++) expect(capacity.take(on(engine), high())).toBeDefined();
    expect(figures(engine).inFlight).toBe(8);
  });

  test("gives a high-priority request a reserved slot at once while others wait", async () => {
    const engine = engineWith({ maxConcurrency: 2 });
    capacity.take(on(engine), high())?.release();
    const first = capacity.take(on(engine), requestOf("a"));
    const waits = watch(on(engine), requestOf("b"));
    await settle();
    expect([first !== undefined, waits.place]).toEqual([true, undefined]);
    const urgent = capacity.take(on(engine), high());
    expect(urgent).toBeDefined();
    urgent?.release();
    await settle();
    expect(waits.place).toBeUndefined();
    first?.release();
    await waits.settled;
    expect(waits.place).toBeDefined();
  });

  test("reserves no slot after a minute without high priorities, for waiting requests too", async () => {
    const clock = manualClock();
    capacity = new Capacity({ clock, router, bounds: () => bounds });
    const engine = engineWith({ maxConcurrency: 2 });
    capacity.take(on(engine), high())?.release();
    expect(capacity.take(on(engine), requestOf("a"))).toBeDefined();
    const waits = watch(on(engine), requestOf("b"));
    clock.advance(60_000);
    await waits.settled;
    expect(waits.place).toBeDefined();
  });

  test("leaves lower priorities a share of the slots, however many are reserved", () => {
    for (const [places, left] of [
      [1, 1],
      [2, 1],
      [8, 2],
      [21, 5],
    ] as const) {
      const engine = engineWith({ maxConcurrency: places });
      const held = Array.from({ length: places }, () => capacity.take(on(engine), high()));
      for (const place of held) place?.release();
      for (let i = 0; i < left; i++) expect(capacity.take(on(engine), requestOf("a", 1, "low"))).toBeDefined();
      expect(capacity.take(on(engine), requestOf("a", 1, "low"))).toBeUndefined();
    }
  });

  test("gives a wide request reserved slots if it is the only request", async () => {
    const engine = engineWith({ concurrency: () => 4 });
    for (const place of [capacity.take(on(engine), high(2))]) place?.release();
    const wide = watch(on(engine), requestOf("a", 3));
    await wide.settled;
    expect(wide.place).toBeDefined();
    expect(capacity.take(on(engine), requestOf("b"))).toBeUndefined();
    expect(capacity.take(on(engine), high())).toBeDefined();
  });

  test("gives the idle lane no reserved slot, and interrupts it for a live request that it blocks", async () => {
    const engine = engineWith({ maxConcurrency: 4 });
    capacity.take(on(engine), high())?.release();
    let asked = 0;
    const line = { ...requestOf("a"), onWanted: () => void asked++ };
    expect(capacity.idleSlots(on(engine), line)).toBe(2);
    const lines = [capacity.take(on(engine), line), capacity.take(on(engine), line), capacity.take(on(engine), line)];
    expect(lines.map((place) => place !== undefined)).toEqual([true, true, false]);
    const live = watch(on(engine), requestOf("b"));
    await settle();
    expect([asked, live.place]).toEqual([1, undefined]);
    lines[1]?.release();
    await live.settled;
    expect(live.place).toBeDefined();
  });

  test("raises the estimated concurrency of an engine although some slots are reserved", () => {
    const engine = engineWith({});
    capacity.take(on(engine), high())?.release();
    const { limit } = figures(engine);
    const places = Array.from({ length: limit }, () => capacity.take(on(engine), requestOf("a")));
    expect(places.filter((place) => place === undefined)).toHaveLength(2);
    places[0]?.answered();
    expect(figures(engine).limit).toBe(limit + 1);
  });
});

test("reports the queue position and the expected wait of a waiting request", async () => {
  const clock = manualClock();
  capacity = new Capacity({ clock, router, bounds: () => bounds });
  const engine = engineWith({ maxConcurrency: 2 });
  const [first] = [capacity.take(on(engine), requestOf("a")), capacity.take(on(engine), requestOf("a"))];
  const turns = (["low", "normal", "high"] as const).map((priority) => {
    const turn = capacity.arrive();
    capacity.wait(on(engine), requestOf("b", 1, priority), turn, never).catch(() => {});
    return turn;
  });
  await settle();
  const positions = () => turns.map((turn) => capacity.positionOf(turn));
  expect(positions().map((one) => one && [one.place, one.of, one.expectedMs])).toEqual([
    [3, 3, undefined],
    [2, 3, undefined],
    [1, 3, undefined],
  ]);
  clock.advance(1_000);
  first?.answered();
  first?.release();
  await settle();
  expect(positions()).toEqual([
    { place: 2, of: 2, waitedMs: 1_000, expectedMs: 1_000 },
    { place: 1, of: 2, waitedMs: 1_000, expectedMs: 500 },
    undefined,
  ]);
});
