// Tests a model's overflow: its own servers come first, other servers only for a reason of the policy and within its
// cost limits.
import { beforeEach, describe, expect, test } from "bun:test";
import { ContinuingWorld, messages } from "../../../tests/support/continuing-servers.ts";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { type ManualClock, manualClock } from "../../../tests/support/manual-clock.ts";
import { noSeal } from "../../../tests/support/no-seal.ts";
import { bodyOf } from "../../base/bytes/body-source.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import { Deferred } from "../../base/deferred.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Engine, EngineResponse } from "../../domain/models/engine.ts";
import type { Model } from "../../domain/models/model.ts";
import type { OverflowPolicy, OverflowSpendStore, OverflowTarget } from "../../domain/models/policies/overflow.ts";
import { LearnedLengths } from "../../policy/learned-lengths.ts";
import type { Dispatched, Sender } from "../routing/attempt.ts";
import { Capacity } from "../routing/capacity.ts";
import { dispatch } from "../routing/dispatch.ts";
import { Router } from "../routing/route.ts";
import type { Tried } from "../trail-writer.ts";
import { Overflow, ownDeployments } from "./overflow.ts";
import { OverflowSpending } from "./overflow-spending.ts";

/** With these prices, a token costs one nano-USD. */
const cost = { input: 0.001, output: 0.001 };
const noon = Date.UTC(2026, 9, 1, 12) / 1000;

let clock: ManualClock;
let router: Router;
let capacity: Capacity;
let overflow: Overflow;
let spending: OverflowSpending;
let steps: Tried[];
let spent: Map<string, number>;

/** A store in memory that works like the database. */
const store: OverflowSpendStore = {
  async change(changes) {
    return changes.map(({ model, start, nanoUsd, most }) => {
      const name = `${model} ${start}`;
      const before = spent.get(name) ?? 0;
      if (most !== null && before + nanoUsd > most) return { made: false, spentNanoUsd: before };
      spent.set(name, before + nanoUsd);
      return { made: true, spentNanoUsd: before + nanoUsd };
    });
  },
  spent: async ({ model, start }) => spent.get(`${model} ${start}`) ?? 0,
};

beforeEach(() => begin(manualClock(noon)));

function begin(with_: ManualClock): void {
  clock = with_;
  steps = [];
  spent = new Map();
  router = new Router(clock, () => 0.5);
  capacity = new Capacity({ clock, router, bounds: () => ({ maxWaiting: 512, maxWaitMs: 30_000 }) });
  spending = new OverflowSpending({ store, clock, log: { warn() {} } });
  overflow = new Overflow({ router, capacity, spending, lengths: new LearnedLengths(), clock });
}

interface TestEngine extends Engine {
  asked: number;
}

function engineNamed(name: string, answer: () => EngineResponse | Promise<EngineResponse> = ok, most = 1): TestEngine {
  const engine = {
    ...{ name, asked: 0, maxConcurrency: most },
    redact: (text: string) => text,
    models: async () => [],
    async send() {
      engine.asked++;
      return await answer();
    },
  };
  return engine;
}

const answerOf = (status: number): EngineResponse => ({
  status,
  headers: new Headers(),
  body: bodyOf(new Uint8Array()),
});
const ok = () => answerOf(200);

const target = (upstream: string, more: Partial<OverflowTarget> = {}): OverflowTarget => ({
  ...{ upstream, cost, costOf: null },
  ...more,
});

function modelOn(engines: readonly Engine[], policy: Partial<OverflowPolicy> = {}): Model {
  return {
    ...{ id: "m", created: 0, ownedBy: "", capabilities: undefined, context: undefined, environments: ["dev"] },
    price: undefined,
    deployments: engines.map((engine) => ({ engine, model: "m", weight: 1 })),
    policies: {
      overflow: {
        ...{ to: [target("cloud")], afterSeconds: null, promptTokensAbove: null, hours: null },
        ...{ mostNanoUsdPerRequest: null, spend: null },
        ...policy,
      },
    },
  };
}

interface Sending {
  request?: Record<string, unknown>;
  cancellation?: Cancellation;
  onWanted?: () => void;
  clock?: Clock;
  modelNow?: () => Model;
  mayAsk?: () => boolean;
}

function send(model: Model, sending: Sending = {}) {
  const { request = {}, cancellation = new Cancellation(), onWanted } = sending;
  const { modelNow = () => model, mayAsk = () => true } = sending;
  const decoded = decodedRequest({ messages: [], max_tokens: 10, ...request });
  const sender: Sender = {
    ...{
      requestId: "req_1",
      priority: "normal",
      accountId: "a",
      partyId: "a",
      memoryAccount: bufferedBytes.visitors,
      recording: false,
      seal: noSeal,
      cancellation,
    },
    workload: {
      promptTokens: decoded.promptTokens,
      maxCompletionTokens: decoded.maxCompletionTokens,
      width: 1,
      prefix: () => undefined,
    },
    onWanted,
    ...{ modelNow, mayAsk },
    fallbackModels: () => [],
    waits() {},
    waited() {},
    sending() {},
    attempted() {},
    tried(step) {
      steps.push(step);
      return null;
    },
  };
  return Promise.resolve(dispatch(decoded, model, { router, capacity, clock, overflow }, sender));
}

const nameOf = ({ deployment }: Dispatched) => deployment.engine.name;
const reasons = () => steps.flatMap(({ result, said }) => (result === "overflowed" ? [said] : []));

async function askedBy(model: Model, sending?: Sending): Promise<string> {
  const taken = await send(model, sending);
  taken.bill?.settle(undefined);
  taken.done(false);
  return nameOf(taken);
}

describe("reasons", () => {
  test("tries a model's own servers first, and others only if none is available, whatever the weights", async () => {
    const [own, cloud] = [engineNamed("own"), engineNamed("cloud")];
    const model = modelOn([cloud, own]);
    const [first] = model.deployments;
    if (first) first.weight = 1_000_000;
    for (let i = 0; i < 20; i++) expect(await askedBy(model)).toBe("own");
    expect([cloud.asked, reasons()]).toEqual([0, []]);
    expect(ownDeployments(model).map(({ engine }) => engine.name)).toEqual(["own"]);
  });

  test("waits for its own server if waiting is not configured as a reason to overflow", async () => {
    const [own, cloud] = [engineNamed("own"), engineNamed("cloud")];
    const model = modelOn([own, cloud]);
    const first = await send(model);
    const second = send(model);
    await Bun.sleep(20);
    expect(cloud.asked).toBe(0);
    first.done(false);
    expect(nameOf(await second)).toBe("own");
  });

  test("overflows while its own server fails, rests or drains, and returns once it works", async () => {
    let works = false;
    const own = engineNamed("own", () => (works ? ok() : answerOf(500)));
    const model = modelOn([own, engineNamed("cloud")]);
    expect(await askedBy(model)).toBe("cloud");
    expect(await askedBy(model)).toBe("cloud");
    expect([own.asked, reasons()]).toEqual([1, ["down", "down"]]);
    works = true;
    clock.advance(120_000);
    expect(await askedBy(model)).toBe("own");
    router.drained = new Set(["own"]);
    expect(await askedBy(model)).toBe("cloud");
    router.drained = new Set();
    expect(await askedBy(model)).toBe("own");
  });

  test("overflows at once if the expected wait is too long, but not while its own slot is free", async () => {
    const model = modelOn([engineNamed("own"), engineNamed("cloud")], { afterSeconds: 3 });
    const slow = await send(model);
    slow.firstByte();
    clock.advance(4_000);
    slow.done(false);
    expect(await askedBy(model)).toBe("own");
    const busy = await send(model);
    expect(nameOf(busy)).toBe("own");
    expect(await askedBy(model)).toBe("cloud");
    busy.done(false);
    expect([await askedBy(model), reasons()]).toEqual(["own", ["wait"]]);
  });

  test("overflows a request after an unexpected wait, keeps its queue position, and takes the first free slot", async () => {
    const gate = new Deferred<EngineResponse>();
    const cloud = engineNamed("cloud");
    const own = engineNamed("own", async () => await gate);
    const model = modelOn([own, cloud], { afterSeconds: 0.05 });
    begin({ ...manualClock(noon), monotonicMs: () => performance.now() });
    const first = send(model);
    const since = performance.now();
    const [second, third] = [send(model), send(model)];
    expect(nameOf(await second)).toBe("cloud");
    expect(performance.now() - since).toBeGreaterThan(45);
    // The cloud's only slot is taken, so the third request waits for both servers and takes the first free slot.
    gate.resolve(ok());
    (await first).done(false);
    expect(nameOf(await third)).toBe("own");
    expect([cloud.asked, reasons()]).toEqual([1, ["wait"]]);
  });

  test("sends a long prompt to the overflow, and to its own server if the overflow does not take it", async () => {
    let works = true;
    const cloud = engineNamed("cloud", () => (works ? ok() : answerOf(503)));
    const model = modelOn([engineNamed("own"), cloud], { promptTokensAbove: 50 });
    const long = { request: { messages: [{ role: "user", content: "a word ".repeat(200) }] } };
    expect([await askedBy(model), await askedBy(model, long)]).toEqual(["own", "cloud"]);
    works = false;
    expect([await askedBy(model, long), reasons()]).toEqual(["own", ["prompt", "prompt"]]);
  });

  test("treats all servers alike within the configured hours, across midnight too", async () => {
    const model = modelOn([engineNamed("own"), engineNamed("cloud")], { hours: [{ start: 22 * 60, end: 2 * 60 }] });
    const askedAt = async (hour: number) => {
      clock.jump((hour - new Date(clock.nowSeconds() * 1000).getUTCHours()) * 3_600);
      const taken = [await send(model), await send(model).catch(() => undefined)];
      for (const one of taken) one?.done(false);
      return taken.flatMap((one) => (one ? [nameOf(one)] : [])).sort();
    };
    expect(await askedAt(23)).toEqual(["cloud", "own"]);
    expect(await askedAt(1)).toEqual(["cloud", "own"]);
    clock.jump(2 * 3_600);
    for (let i = 0; i < 10; i++) expect(await askedBy(model)).toBe("own");
  });

  test("keeps an idle-lane request waiting for its own server", async () => {
    const [own, cloud] = [engineNamed("own"), engineNamed("cloud")];
    const model = modelOn([own, cloud], { afterSeconds: 0 });
    const first = await send(model);
    const idle = send(model, { onWanted() {} });
    await Bun.sleep(20);
    expect(cloud.asked).toBe(0);
    first.done(false);
    expect(nameOf(await idle)).toBe("own");
  });
});

describe("money", () => {
  const down = () => engineNamed("own", () => answerOf(500));

  test("tries the overflow target where this request costs least first", async () => {
    const to = [
      target("prompts", { cost: { input: 0.001, output: 1 } }),
      target("answers", { cost: { input: 1, output: 0.001 } }),
    ];
    const model = modelOn([engineNamed("prompts"), engineNamed("answers")], { to });
    const long = { messages: [{ role: "user", content: "a word ".repeat(200) }], max_tokens: 1 };
    expect(await askedBy(model, { request: long })).toBe("prompts");
    expect(await askedBy(model, { request: { max_tokens: 200 } })).toBe("answers");
  });

  test("skips a target where the request costs too much, and says so if no other is left", async () => {
    const cloud = engineNamed("cloud");
    const model = modelOn([cloud], { mostNanoUsdPerRequest: 100 });
    expect(await askedBy(model, { request: { max_tokens: 50 } })).toBe("cloud");
    const dear = send(model, { request: { max_tokens: 150 } });
    await expect(dear).rejects.toMatchObject({ code: "service_unavailable", refusal: "capacity" });
    await expect(dear).rejects.toThrow(/would cost more than one request may\. Send a shorter prompt/);
    expect(cloud.asked).toBe(1);
  });

  test("reserves the usual answer length if the request has no limit or an unknown member", async () => {
    const model = modelOn([engineNamed("cloud")], { spend: { per: "day", nanoUsd: 100 } });
    expect(await askedBy(model, { request: { max_tokens: 50 } })).toBe("cloud");
    for (const request of [{ max_tokens: 50, a_new_name: 5_000 }, { max_tokens: undefined }]) {
      await expect(send(model, { request })).rejects.toThrow(/would cost more/);
    }
  });

  test("skips a target of unknown cost only if spending is limited", async () => {
    const to = [target("cloud", { cost: null })];
    const bound = send(modelOn([engineNamed("cloud")], { to, mostNanoUsdPerRequest: 1 }));
    await expect(bound).rejects.toMatchObject({
      code: "service_unavailable",
      detail: expect.stringContaining("no cost is known"),
    });
    expect(await askedBy(modelOn([engineNamed("cloud")], { to }))).toBe("cloud");
    const listed = [target("cloud", { cost: null, costOf: "openai/gpt-4o" })];
    const model = modelOn([engineNamed("cloud")], { to: listed, mostNanoUsdPerRequest: 1 });
    await expect(send(model)).rejects.toThrow(/would cost more/);
  });

  test("admits no more of 200 concurrent requests than the spend allows, and says when to retry", async () => {
    const cloud = engineNamed("cloud", ok, 200);
    const model = modelOn([cloud], { spend: { nanoUsd: 1_000, per: "day" } });
    const results = await Promise.allSettled(Array.from({ length: 200 }, () => send(model)));
    const taken = results.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const each = [...spent.values()].reduce((a, b) => a + b, 0) / taken.length;
    expect(taken.length).toBe(Math.floor(1_000 / each));
    expect([cloud.asked, capacity.figures(cloud)[0]?.inFlight]).toEqual([taken.length, taken.length]);
    const refused = results.find((one) => one.status === "rejected");
    expect(refused?.reason).toMatchObject({ code: "service_unavailable", retryAfterSeconds: 43_200 });
    expect(refused?.reason.message).toContain(
      "what its overflow may cost in this day is used up. It opens at 2026-10-02T00:00:00Z.",
    );
    expect(refused?.reason.message).not.toContain("1000");
    // The actual costs are lower, and the difference becomes available to other requests.
    for (const one of taken) {
      one.bill?.settle({ promptTokens: 1, completionTokens: 1, parts: undefined });
      one.done(false);
    }
    await spending.close();
    expect([...spent.values()]).toEqual([2 * taken.length]);
    clock.advance(1_000);
    expect(await askedBy(model)).toBe("cloud");
  });

  test("keeps requests at their own servers once the spend is used up, until the next day", async () => {
    const model = modelOn([down(), engineNamed("cloud")], { spend: { nanoUsd: 15, per: "day" } });
    const taken = await send(model);
    taken.done(false);
    taken.bill?.settle({ promptTokens: 1, completionTokens: 14, parts: undefined });
    await expect(send(model)).rejects.toThrow(/is used up/);
    clock.advance(43_200_000);
    expect(await askedBy(model)).toBe("cloud");
  });

  test("charges nothing for a refused request, and at least the prompt for a cancelled one", async () => {
    let answer: () => EngineResponse | Promise<EngineResponse> = () => answerOf(400);
    const spend = { nanoUsd: 1_000_000, per: "day" } as const;
    const model = modelOn([engineNamed("cloud", () => answer())], { spend });
    await expect(send(model)).rejects.toMatchObject({ code: "invalid_request" });
    await spending.close();
    expect([...spent.values()]).toEqual([0]);
    answer = () => answerOf(500);
    await expect(send(model)).rejects.toBeDefined();
    await spending.close();
    expect([...spent.values()]).toEqual([0]);
    clock.advance(600_000);
    let clientGone = new Cancellation();
    answer = () => {
      clientGone.cancel(new Error("left"));
      return Promise.reject(clientGone.reason);
    };
    const request = { stream: true, messages: [{ role: "user", content: "a word ".repeat(200) }] };
    const { promptTokens } = decodedRequest(request);
    await expect(send(model, { cancellation: clientGone, request })).rejects.toThrow("left");
    await spending.close();
    expect([...spent.values()]).toEqual([promptTokens]);
    // It is unknown how much of the whole answer was generated, so the reserved amount counts as spent.
    const whole = { ...request, stream: false, max_tokens: 5_000 };
    clientGone = new Cancellation();
    await expect(send(model, { cancellation: clientGone, request: whole })).rejects.toThrow("left");
    await spending.close();
    expect([...spent.values()][0]).toBeGreaterThan(2 * promptTokens + 4_999);
  });

  test.each([
    ["whole", true, "all that was set aside"],
    ["streamed", true, "its prompt"],
    ["whole", false, "nothing"],
  ] as const)("charges a failed answer by its form: %s, cut %p, %s", async (form, isCut, paid) => {
    const model = modelOn([engineNamed("cloud")], { spend: { nanoUsd: 1_000_000, per: "day" } });
    const messages = [{ role: "user", content: "a word ".repeat(200) }];
    const request = { stream: form === "streamed", messages, max_tokens: 5_000 };
    const { promptTokens } = decodedRequest(request);
    const taken = await send(model, { request });
    await expect(Promise.resolve(taken.another(new Error("broke off"), isCut))).rejects.toBeInstanceOf(GatewayError);
    await spending.close();
    const least = { "all that was set aside": promptTokens + 5_000, "its prompt": promptTokens, nothing: 0 }[paid];
    expect([...spent.values()]).toEqual([least]);
  });

  test("tries its own server only once if the overflow spend is used up, however slowly it failed", async () => {
    const own = engineNamed("own", () => {
      // So long that the cached spending is no longer valid.
      clock.advance(5_000);
      return answerOf(500);
    });
    spent.set(`m ${Date.UTC(2026, 9, 1) / 1000}`, 1_000);
    const model = modelOn([own, engineNamed("cloud")], { spend: { nanoUsd: 1_000, per: "day" } });
    await expect(send(model)).rejects.toThrow(/is used up/);
    expect(own.asked).toBe(1);
  });

  test("refunds the reserved cost if the target may no longer be used", async () => {
    const cloud = engineNamed("cloud");
    const model = modelOn([cloud], { spend: { nanoUsd: 1_000, per: "day" } });
    let asked = 0;
    const nowhere = { ...model, deployments: [] };
    const sending = send(model, { mayAsk: () => asked++ === 0, modelNow: () => nowhere });
    await expect(sending).rejects.toMatchObject({ code: "service_unavailable" });
    await spending.close();
    expect([cloud.asked, capacity.figures(cloud)[0]?.inFlight, [...spent.values()]]).toEqual([0, 0, [0]]);
  });

  test("charges nothing and frees the slot if the client leaves during the reservation", async () => {
    const cloud = engineNamed("cloud");
    const model = modelOn([cloud], { spend: { nanoUsd: 1_000, per: "day" } });
    const cancellation = new Cancellation();
    const sending = send(model, { cancellation });
    cancellation.cancel(new Error("left"));
    await expect(sending).rejects.toThrow("left");
    await spending.close();
    expect([cloud.asked, capacity.figures(cloud)[0]?.inFlight, [...spent.values()]]).toEqual([0, 0, [0]]);
  });
});

test("charges each server's part of a continued answer to its own overflow once", async () => {
  const tokens = Array.from({ length: 20 }, (_, i) => `word${i} `);
  const world = new ContinuingWorld({
    tokens,
    breaks: [
      { atByte: 900, how: "reset" },
      { atByte: 700, how: "reset" },
    ],
  });
  const clock = systemClock;
  const spending = new OverflowSpending({ store, clock, log: { warn() {} } });
  const { router, capacity } = world;
  world.deps.overflow = new Overflow({ router, capacity, spending, lengths: new LearnedLengths(), clock });
  const { overflow } =
    modelOn(world.engines, {
      to: world.engines.map(({ name }) => target(name)),
      spend: { nanoUsd: 1_000_000, per: "month" },
    }).policies ?? {};
  world.model = { ...world.model, policies: { continuation: true, ...(overflow && { overflow }) } };
  await world.ask({ messages, max_tokens: 5_000 });
  await spending.close();
  const [end] = world.ends;
  expect([world.served.length, end?.completionTokens]).toEqual([3, world.computed.completionTokens]);
  const paid = [...spent.values()].reduce((sum, one) => sum + one, 0);
  const used = (end?.promptTokens ?? 0) + (end?.completionTokens ?? 0);
  // The tokens that a broken-off server read are known exactly only when the next server reports its prompt: up to 20
  // tokens for each break.
  expect(paid).toBeLessThanOrEqual(used);
  expect(paid).toBeGreaterThanOrEqual(used - 40);
});

test("counts overflowed requests by target and reason", async () => {
  const model = modelOn([engineNamed("cloud")]);
  for (let i = 0; i < 3; i++) await askedBy(model);
  expect([...overflow.counts]).toEqual([{ labels: { model: "m", upstream: "cloud", reason: "down" }, count: 3 }]);
});
