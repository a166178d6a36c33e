// What is set aside for a request, what answers teach, and which reported usage is believed.
import { describe, expect, test } from "bun:test";
import { principalFor } from "../../tests/support/principal.ts";
import { GatewayError } from "../base/errors.ts";
import type { LimitStatus, LimitStore, Reservation } from "../domain/limits/limits.ts";
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
