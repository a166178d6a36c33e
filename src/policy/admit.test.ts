// What is set aside for a request, what answers teach, and which reported usage is believed.
import { describe, expect, test } from "bun:test";
import { principalFor } from "../../tests/support/principal.ts";
import { GatewayError } from "../base/errors.ts";
import type { LimitSet, LimitStatus, LimitStore, Reservation } from "../domain/limits/limits.ts";
import { windowOf } from "../domain/limits/quota-rules.ts";
import { Admitter, type RequestSize } from "./admit.ts";
import { believable, usageBounds } from "./believable-usage.ts";
import { LearnedLengths } from "./learned-lengths.ts";

const status: LimitStatus = { requests: { limit: 1, remaining: 0, resetMs: 1 }, tokens: undefined };

/** A store that admits everything, or refuses, and remembers what it was asked for. */
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
  test("a reservation with a limit on the answer is all of it, for each generation, with its price; less will not do", async () => {
    expect(await reservationOf({ maxCompletionTokens: 50, width: 3 })).toMatchObject({
      tokens: 250,
      nanoUsd: 100 * 1_000 + 150 * 4_000,
      minTokens: 250,
      minNanoUsd: 700_000,
    });
  });

  test("a reservation without a limit on the answer is what is usual; the prompt and one token for each generation will do", async () => {
    expect(await reservationOf({})).toMatchObject({
      tokens: 356,
      nanoUsd: 100_000 + 256 * 4_000,
      minTokens: 101,
      minNanoUsd: 104_000,
    });
    expect(await reservationOf({ width: 4 })).toMatchObject({ tokens: 100 + 4 * 256, minTokens: 104 });
  });

  test("a reservation never goes beyond the context", async () => {
    expect(await reservationOf({ promptTokens: 8_000, maxCompletionTokens: 1_000 })).toMatchObject({ tokens: 8_192 });
    expect(await reservationOf({ promptTokens: 8_190 })).toMatchObject({ tokens: 8_192, minTokens: 8_191 });
    // Several prompts in one request, or an estimate that is too high.
    expect(await reservationOf({ promptTokens: 9_000, maxCompletionTokens: 10 })).toMatchObject({ tokens: 9_010 });
  });

  test("a reservation where nothing is generated is the prompt alone; where nothing is charged it costs nothing", async () => {
    const model = { id: "m", context: undefined, price: undefined };
    expect(await reservationOf({ model, maxCompletionTokens: 0 })).toMatchObject({
      tokens: 100,
      nanoUsd: 0,
      minTokens: 100,
      minNanoUsd: 0,
    });
  });
});

describe("the state of the limits", () => {
  test("the state of the limits is told on admission and, before the refusal is thrown, on refusal", async () => {
    const told: LimitStatus[] = [];
    const lengths = new LearnedLengths();
    const admitted = new Admitter({ limits: storeThat().store, lengths });
    const { reservedTokens } = await admitted.admit(principalFor(), size, {
      onLimits: (state) => void told.push(state),
    });
    expect(reservedTokens).toBe(356);
    const error = new GatewayError("rate_limit_exceeded", "later");
    const refused = new Admitter({ limits: storeThat(error).store, lengths });
    expect(() => refused.admit(principalFor(), size, { onLimits: (state) => void told.push(state) })).toThrow(error);
    expect(told).toEqual([status, status]);
  });
});

describe("learned lengths", () => {
  test("learned lengths follow what the answers of each model come to", async () => {
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

  test("the learned lengths of answers that are always empty still are one token", () => {
    const lengths = new LearnedLengths();
    for (let i = 0; i < 2_000; i++) lengths.learn("m", 0);
    expect(lengths.estimate("m")).toBe(1);
  });
});

describe("believable usage", () => {
  const text = { bodyBytes: 1_000, hasMedia: false, maxCompletionTokens: 50, width: 2 };
  const usage = (promptTokens: number, completionTokens: number) => ({
    promptTokens,
    completionTokens,
    estimated: false,
  });

  test("believable usage up to the bounds is left alone, above them it is capped and flagged", () => {
    const bounds = usageBounds({ context: 100_000 }, text);
    expect(bounds.completionTokens).toBe(100);
    const honest = usage(1_000, 100);
    expect(believable(honest, bounds)).toBe(honest);
    expect(believable(usage(10, 101), bounds)).toEqual(usage(10, 100));
    expect(believable(usage(1_000_000, 5), bounds)).toEqual(usage(bounds.promptTokens, 5));
  });

  test("a prompt has no more tokens than bytes, what a chat template adds left room for, nor than the context", () => {
    const { promptTokens } = usageBounds({ context: undefined }, text);
    expect(promptTokens).toBeWithin(1_000 + 500, 1_000 + 10_000);
    expect(usageBounds({ context: 512 }, text).promptTokens).toBe(1_024);
  });

  test("a limit that a model server may not read bounds no answer: the context does", () => {
    expect(usageBounds({ context: 512 }, { ...text, limitHolds: false }).completionTokens).toBe(1_024);
    expect(usageBounds({ context: 512 }, { ...text, limitHolds: true }).completionTokens).toBe(100);
  });

  test("the tokens of images and files are bounded by the context alone", () => {
    expect(usageBounds({ context: 128_000 }, { ...text, hasMedia: true, width: 1 }).promptTokens).toBe(128_000);
    expect(usageBounds({ context: undefined }, { ...text, hasMedia: true }).promptTokens).toBeGreaterThan(1_000_000);
  });

  test("reasoning that is never delivered is believed up to the context", () => {
    const open = { ...text, maxCompletionTokens: undefined, width: 1 };
    expect(usageBounds({ context: 131_072 }, open).completionTokens).toBe(131_072);
    expect(usageBounds({ context: undefined }, open).completionTokens).toBeGreaterThan(200_000);
  });

  test("many inputs to embed may exceed the context of each; completions are not believed there", () => {
    const many = { bodyBytes: 100_000, hasMedia: false, maxCompletionTokens: 0, width: 1 };
    const bounds = usageBounds({ context: 512 }, many);
    const most = usage(90_000, 0);
    expect(believable(most, bounds)).toBe(most);
    expect(believable(usage(5, 7), bounds)).toEqual(usage(5, 0));
  });
});

describe("the most that a request can have used", () => {
  const request = { bodyBytes: 40_000, hasMedia: false, maxCompletionTokens: 5, width: 2 };

  test("is bounded by the context in place of a limit that another member may replace", () => {
    expect(usageBounds({ context: 900 }, request).completionTokens).toBe(10);
    expect(usageBounds({ context: 900 }, { ...request, limitHolds: false }).completionTokens).toBe(1_800);
    expect(usageBounds({ context: undefined }, { ...request, limitHolds: false }).completionTokens).toBe(524_288);
  });

  test("is never less for a prompt than its text, however small the context is that a list of models states", () => {
    expect(usageBounds({ context: 1 }, { ...request, promptTokens: 10_000 }).promptTokens).toBe(10_000);
    expect(usageBounds({ context: 1 }, { ...request, promptTokens: 10_000, readings: 3 }).promptTokens).toBe(30_000);
    expect(usageBounds({ context: 1 }, { ...request, promptTokens: 1e9 }).promptTokens).toBe(44_096);
  });
});

describe("what a dearer fallback costs more", () => {
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

  test("sets aside the difference in price, of quotas in USD alone, and no request and no token", () => {
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

  test("sets aside nothing for a fallback of the same price or a lower one", () => {
    for (const price of [size.model.price, { input: 0, output: 0 }, undefined]) {
      expect(dearer({ ...dear, price })).toMatchObject({ lease: undefined, reservations: [] });
    }
  });

  test("refuses by what is least likely, and not by all that an answer without a limit may have", () => {
    const { reservations } = dearer(dear, limitsOf(), size);
    expect(reservations).toMatchObject([{ nanoUsd: 100 * 9_000 + 256 * 36_000, minNanoUsd: 100 * 9_000 + 36_000 }]);
  });

  test("leaves quotas that end an answer to the answer itself, where one does", () => {
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

  test("throws the refusal of a quota that has less left", () => {
    const refusal = new GatewayError("insufficient_quota", "none");
    const { store } = storeThat(refusal);
    const admitter = new Admitter({ limits: store, lengths: new LearnedLengths() });
    expect(() => admitter.admitDearer(principalFor(), asked, dear)).toThrow(refusal);
  });
});

test("a reservation whose limit may not hold sets aside what is usual, and is refused by its limit alone", async () => {
  expect(await reservationOf({ maxCompletionTokens: 1, limitHolds: false })).toMatchObject({
    ...{ tokens: 356, minTokens: 101, minNanoUsd: 104_000 },
  });
  expect(await reservationOf({ maxCompletionTokens: 1_000, limitHolds: false })).toMatchObject({
    ...{ tokens: 1_100, minTokens: 1_100 },
  });
});

describe("what is set aside of quotas that end an answer", () => {
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

  test("sets aside no more of a whole answer than the context has room for; one token for each generation will do", async () => {
    const whole = { promptTokens: 8_000, maxCompletionTokens: 1_000, width: 2 };
    expect(await stopOf(whole)).toEqual({
      ...{ tokens: 8_000 + 2 * 192, nanoUsd: 8_000 * 1_000 + 2 * 192 * 4_000, grows: false },
      ...{ minTokens: 8_002, minNanoUsd: 8_000 * 1_000 + 2 * 4_000 },
    });
  });

  test("sets aside a block and one token for each generation of a stream, and less where the answer may not have that", async () => {
    expect(await stopOf({ stream: true, width: 2 })).toMatchObject({ tokens: 100 + 2 + 512, grows: true });
    expect(await stopOf({ stream: true, maxCompletionTokens: 20 })).toMatchObject({ tokens: 120, minTokens: 101 });
  });
});

test("refuses nobody as spent who has one request left", () => {
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
