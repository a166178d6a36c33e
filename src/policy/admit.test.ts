// Tests the reservation for a request, what is learned from answers, and which reported usage is accepted.
import { describe, expect, test } from "bun:test";
import { principalFor } from "../../tests/support/principal.ts";
import { GatewayError } from "../base/errors.ts";
import type { LimitSet, LimitStatus, LimitStore, Reservation } from "../domain/limits/limits.ts";
import { windowOf } from "../domain/limits/quota-rules.ts";
import { Admitter, type RequestSize } from "./admit.ts";
import { LearnedLengths } from "./learned-lengths.ts";
import { clampUsage, usageBounds } from "./usage-bounds.ts";

const status: LimitStatus = { requests: { limit: 1, remaining: 0, resetMs: 1 }, tokens: undefined };

/** Returns a store that admits everything, or refuses, and records what was requested. */
function storeThat(refusal?: GatewayError) {
  const asked: Reservation[] = [];
  const store: LimitStore = {
    admit(_limits, reservation) {
      asked.push(reservation);
      if (refusal) return { refusal, status };
      return { lease: { extend() {}, settle() {} }, reservedTokens: reservation.tokens, status };
    },
    peek: () => status,
    used: async () => ({ tokens: 0, nanoUsd: 0 }),
    forgetQuotas() {},
    usedInWindow: async () => ({ requests: 0, tokens: 0, nanoUsd: 0, period: undefined }),
  };
  return { asked, store };
}

const size: RequestSize = {
  model: { id: "m", context: 8_192, price: { input: 1, output: 4 } },
  promptTokens: 100,
  maxCompletionTokens: undefined,
  width: 1,
};

async function reservationOf(changes: Partial<RequestSize>, lengths = new LearnedLengths()): Promise<Reservation> {
  const { asked, store } = storeThat();
  await new Admitter({ limits: store, lengths }).admit(principalFor(), { ...size, ...changes }, { onLimits() {} });
  const [reservation] = asked;
  if (!reservation) throw new Error("Nothing was asked.");
  return reservation;
}

describe("reservation", () => {
  test("reserves all of an answer with a limit for each generation, with its price, and accepts no less", async () => {
    expect(await reservationOf({ maxCompletionTokens: 50, width: 3 })).toMatchObject({
      tokens: 250,
      nanoUsd: 100 * 1_000 + 150 * 4_000,
      minTokens: 250,
      minNanoUsd: 700_000,
    });
  });

  test("reserves the usual length of an answer without a limit, and accepts the prompt plus a token each", async () => {
    expect(await reservationOf({})).toMatchObject({
      tokens: 356,
      nanoUsd: 100_000 + 256 * 4_000,
      minTokens: 101,
      minNanoUsd: 104_000,
    });
    expect(await reservationOf({ width: 4 })).toMatchObject({ tokens: 100 + 4 * 256, minTokens: 104 });
  });

  test("never reserves more than the context", async () => {
    expect(await reservationOf({ promptTokens: 8_000, maxCompletionTokens: 1_000 })).toMatchObject({ tokens: 8_192 });
    expect(await reservationOf({ promptTokens: 8_190 })).toMatchObject({ tokens: 8_192, minTokens: 8_191 });
    // The prompt may be longer than the context: it is several prompts, or its estimate is too high.
    expect(await reservationOf({ promptTokens: 9_000, maxCompletionTokens: 10 })).toMatchObject({ tokens: 9_010 });
  });

  test("reserves the prompt alone if nothing is generated, and no cost without a price", async () => {
    const model = { id: "m", context: undefined, price: undefined };
    expect(await reservationOf({ model, maxCompletionTokens: 0 })).toMatchObject({
      tokens: 100,
      nanoUsd: 0,
      minTokens: 100,
      minNanoUsd: 0,
    });
  });
});

describe("the reported state of the limits", () => {
  test("reports the state of the limits on admission, and on refusal before the error", async () => {
    const received: LimitStatus[] = [];
    const lengths = new LearnedLengths();
    const admitted = new Admitter({ limits: storeThat().store, lengths });
    const { reservedTokens } = await admitted.admit(principalFor(), size, {
      onLimits: (state) => void received.push(state),
    });
    expect(reservedTokens).toBe(356);
    const error = new GatewayError("rate_limit_exceeded", "later");
    const refused = new Admitter({ limits: storeThat(error).store, lengths });
    expect(() => refused.admit(principalFor(), size, { onLimits: (state) => void received.push(state) })).toThrow(
      error,
    );
    expect(received).toEqual([status, status]);
  });
});

describe("learned lengths", () => {
  test("learns the usual answer length of each model", async () => {
    const lengths = new LearnedLengths();
    const { store } = storeThat();
    const admitter = new Admitter({ limits: store, lengths });
    for (let i = 0; i < 200; i++) admitter.learn({ id: "terse" }, 20);
    for (let i = 0; i < 200; i++) admitter.learn({ id: "wordy" }, i % 2 === 0 ? 1_000 : 3_000);
    const terse = await reservationOf({ model: { ...size.model, id: "terse" } }, lengths);
    expect(terse.tokens).toBeWithin(120, 125);
    const wordy = await reservationOf({ model: { ...size.model, id: "wordy" } }, lengths);
    expect(wordy.tokens).toBeWithin(2_500, 3_600);
    expect((await reservationOf({}, lengths)).tokens).toBe(356);
  });

  test("learns a length of one token from answers that are always empty", () => {
    const lengths = new LearnedLengths();
    for (let i = 0; i < 2_000; i++) lengths.learn("m", 0);
    expect(lengths.estimate("m")).toBe(1);
  });
});

describe("bounds of reported usage", () => {
  const text = { bodyBytes: 1_000, hasMedia: false, maxCompletionTokens: 50, width: 2 };
  const usage = (promptTokens: number, completionTokens: number) => ({
    promptTokens,
    completionTokens,
    estimated: false,
  });

  test("keeps reported usage within the bounds, and caps and flags usage above them", () => {
    const bounds = usageBounds({ context: 100_000 }, text);
    expect(bounds.completionTokens).toBe(100);
    const honest = usage(1_000, 100);
    expect(clampUsage(honest, bounds)).toBe(honest);
    expect(clampUsage(usage(10, 101), bounds)).toEqual(usage(10, 100));
    expect(clampUsage(usage(1_000_000, 5), bounds)).toEqual(usage(bounds.promptTokens, 5));
  });

  test("bounds a prompt by its bytes plus the chat template, and by the context", () => {
    const { promptTokens } = usageBounds({ context: undefined }, text);
    expect(promptTokens).toBeWithin(1_000 + 500, 1_000 + 10_000);
    expect(usageBounds({ context: 512 }, text).promptTokens).toBe(1_024);
  });

  test("bounds an answer by the context if a model server may ignore its limit", () => {
    expect(usageBounds({ context: 512 }, { ...text, limitHolds: false }).completionTokens).toBe(1_024);
    expect(usageBounds({ context: 512 }, { ...text, limitHolds: true }).completionTokens).toBe(100);
  });

  test("bounds the tokens of images and files by the context alone", () => {
    expect(usageBounds({ context: 128_000 }, { ...text, hasMedia: true, width: 1 }).promptTokens).toBe(128_000);
    expect(usageBounds({ context: undefined }, { ...text, hasMedia: true }).promptTokens).toBeGreaterThan(1_000_000);
  });

  test("accepts undelivered reasoning tokens up to the context", () => {
    const open = { ...text, maxCompletionTokens: undefined, width: 1 };
    expect(usageBounds({ context: 131_072 }, open).completionTokens).toBe(131_072);
    expect(usageBounds({ context: undefined }, open).completionTokens).toBeGreaterThan(200_000);
  });

  test("allows many embedding inputs to exceed the context in total, and no completion tokens", () => {
    const many = { bodyBytes: 100_000, hasMedia: false, maxCompletionTokens: 0, width: 1 };
    const bounds = usageBounds({ context: 512 }, many);
    const most = usage(90_000, 0);
    expect(clampUsage(most, bounds)).toBe(most);
    expect(clampUsage(usage(5, 7), bounds)).toEqual(usage(5, 0));
  });
});

describe("the usage bounds of a request", () => {
  const request = { bodyBytes: 40_000, hasMedia: false, maxCompletionTokens: 5, width: 2 };

  test("bounds an answer by the context if another member may replace its limit", () => {
    expect(usageBounds({ context: 900 }, request).completionTokens).toBe(10);
    expect(usageBounds({ context: 900 }, { ...request, limitHolds: false }).completionTokens).toBe(1_800);
    expect(usageBounds({ context: undefined }, { ...request, limitHolds: false }).completionTokens).toBe(524_288);
  });

  test("bounds a prompt by no less than its text, however small the listed context is", () => {
    expect(usageBounds({ context: 1 }, { ...request, promptTokens: 10_000 }).promptTokens).toBe(10_000);
    expect(usageBounds({ context: 1 }, { ...request, promptTokens: 10_000, readings: 3 }).promptTokens).toBe(30_000);
    expect(usageBounds({ context: 1 }, { ...request, promptTokens: 1e9 }).promptTokens).toBe(44_096);
  });
});

describe("the extra cost of a dearer fallback", () => {
  const dear = { id: "dear", context: 8_192, price: { input: 10, output: 40 } };
  const asked = { ...size, maxCompletionTokens: 50 };
  const quota = { id: "key:k", owner: "key", ownerId: "k", environment: "live", tokens: 5, nanoUsd: 7 } as const;
  const limitsOf = (windows: LimitSet["windows"] = undefined): LimitSet => ({
    requests: [{ id: "r", owner: "key", limit: 1, windowSeconds: 60 }],
    tokens: [{ id: "t", owner: "key", limit: 1, windowSeconds: 60 }],
    quotas: [quota, { ...quota, id: "key:tokens", nanoUsd: null }],
    windows,
  });
  const dearer = (fallback: RequestSize["model"], limits = limitsOf(), of: RequestSize = asked) => {
    const { store, asked: reservations } = storeThat();
    const sets: LimitSet[] = [];
    const admit: LimitStore["admit"] = (set, reservation) => {
      sets.push(set);
      return store.admit(set, reservation);
    };
    const admitter = new Admitter({ limits: { ...store, admit }, lengths: new LearnedLengths() });
    const lease = admitter.admitDearer({ ...principalFor(), limits }, of, fallback);
    return { lease, sets, reservations };
  };

  test("reserves the price difference of a dearer fallback from USD quotas alone", () => {
    const { lease, sets, reservations } = dearer(dear);
    expect(lease).toBeDefined();
    const difference = 100 * 9_000 + 50 * 36_000;
    expect(reservations).toEqual([
      { tokens: 0, minTokens: 0, nanoUsd: difference, minNanoUsd: difference, model: "m", tags: undefined },
    ]);
    expect(sets).toMatchObject([
      { requests: [], tokens: [], quotas: [{ id: "key:k", tokens: null, requests: null, nanoUsd: 7 }] },
    ]);
  });

  test("reserves nothing for a fallback of the same or a lower price", () => {
    for (const price of [size.model.price, { input: 0, output: 0 }, undefined]) {
      expect(dearer({ ...dear, price })).toMatchObject({ lease: undefined, reservations: [] });
    }
  });

  test("reserves the usual length for a dearer fallback, and requires one token only", () => {
    const { reservations } = dearer(dear, limitsOf(), size);
    expect(reservations).toMatchObject([{ nanoUsd: 100 * 9_000 + 256 * 36_000, minNanoUsd: 100 * 9_000 + 36_000 }]);
  });

  test("leaves hard-stop quotas to the answer itself if the answer can be stopped", () => {
    const window = windowOf({ per: "day", window: "calendar" });
    const stops = { tokens: false, nanoUsd: true };
    const windows = [
      { ...quota, id: "stopping", window, stops },
      { ...quota, id: "other", window },
    ];
    expect(dearer(dear, limitsOf(windows)).sets[0]?.windows?.map(({ id }) => id)).toEqual(["other"]);
    const whole = { ...asked, isLimitable: false };
    expect(dearer(dear, limitsOf(windows), whole).sets[0]?.windows?.map(({ id }) => id)).toEqual(["stopping", "other"]);
    const embedding = { ...asked, maxCompletionTokens: 0 };
    expect(dearer(dear, limitsOf(windows), embedding).sets[0]?.windows).toHaveLength(2);
  });

  test("throws the refusal of a quota that has less left than a dearer fallback costs", () => {
    const refusal = new GatewayError("insufficient_quota", "none");
    const { store } = storeThat(refusal);
    const admitter = new Admitter({ limits: store, lengths: new LearnedLengths() });
    expect(() => admitter.admitDearer(principalFor(), asked, dear)).toThrow(refusal);
  });
});

test("reserves the usual length if a limit may be ignored, and requires only the limit", async () => {
  expect(await reservationOf({ maxCompletionTokens: 1, limitHolds: false })).toMatchObject({
    ...{ tokens: 356, minTokens: 101, minNanoUsd: 104_000 },
  });
  expect(await reservationOf({ maxCompletionTokens: 1_000, limitHolds: false })).toMatchObject({
    ...{ tokens: 1_100, minTokens: 1_100 },
  });
});

describe("reservations of hard-stop quotas", () => {
  const quota = { id: "key:k", owner: "key", ownerId: "k", environment: "live", tokens: 5, nanoUsd: null } as const;
  const window = windowOf({ per: "day", window: "calendar" });
  const stopping = { ...quota, window, stops: { tokens: true, nanoUsd: false } };
  const limits: LimitSet = { requests: [], tokens: [], quotas: [], windows: [stopping] };
  const stopOf = async (changes: Partial<RequestSize>) => {
    const { asked, store } = storeThat();
    const admitter = new Admitter({ limits: store, lengths: new LearnedLengths() });
    await admitter.admit({ ...principalFor(), limits }, { ...size, ...changes }, { onLimits() {} });
    return asked[0]?.stop;
  };

  test("reserves no more of a hard-stop quota than the context allows, and accepts one token each", async () => {
    const whole = { promptTokens: 8_000, maxCompletionTokens: 1_000, width: 2 };
    expect(await stopOf(whole)).toEqual({
      ...{ tokens: 8_000 + 2 * 192, nanoUsd: 8_000 * 1_000 + 2 * 192 * 4_000, grows: false },
      ...{ minTokens: 8_002, minNanoUsd: 8_000 * 1_000 + 2 * 4_000 },
    });
  });

  test("reserves a block and a token for each generation of a stream, or the answer's lower limit", async () => {
    expect(await stopOf({ stream: true, width: 2 })).toMatchObject({ tokens: 100 + 2 + 512, grows: true });
    expect(await stopOf({ stream: true, maxCompletionTokens: 20 })).toMatchObject({ tokens: 120, minTokens: 101 });
  });
});

test("does not refuse a key as spent while one request is left", () => {
  const rule = { id: "r", owner: "key", limit: 5, windowSeconds: 60 } as const;
  const limits: LimitSet = { requests: [rule], tokens: [], quotas: [] };
  const refusing = (remaining: number) => () => {
    const requests = { limit: 5, remaining, resetMs: 60_000 };
    const peek = () => ({ requests, tokens: undefined });
    const admitter = new Admitter({ limits: { ...storeThat().store, peek }, lengths: new LearnedLengths() });
    return admitter.refuseSpent({ limits }, { onLimits() {} });
  };
  expect(refusing(1)).not.toThrow();
  expect(refusing(0)).toThrow(expect.objectContaining({ code: "rate_limit_exceeded", retryAfterSeconds: 12 }));
});
