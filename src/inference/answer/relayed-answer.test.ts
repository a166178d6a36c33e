// What a stream brings about at the meter: told only of pieces that are due, it books as if told of each.
import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { Client, done, event, requestFor, Source, settled } from "../../../tests/support/relay.ts";
import { usageBegin } from "../../../tests/support/usage-begin.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { systemClock } from "../../base/clock.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { Meter } from "../../policy/meter.ts";
import type { OpenRequest } from "../open-request.ts";
import { Stopping } from "../stopping.ts";
import { relayTo } from "./relayed-answer.ts";

let nowMs = 0;

beforeEach(() => {
  nowMs = 1_000;
  jest.spyOn(performance, "now").mockImplementation(() => nowMs);
});

afterEach(() => void jest.restoreAllMocks());

/** With what it told its ledger and its lease, and when. */
function meterOf(reservedTokens: number): { meter: Meter; told: unknown[] } {
  const told: unknown[] = [];
  const ledger = {
    begin: () => ({
      begun: Promise.resolve(),
      progress: (usage: TokenUsage) => void told.push(["checkpoint", nowMs, usage.completionTokens]),
      settle: () => Promise.resolve(),
    }),
  };
  const lease = { extend: (tokens: number) => void told.push(["extension", nowMs, tokens]), settle: () => {} };
  const bounds = { promptTokens: 1_000, completionTokens: 1_000 };
  return {
    meter: new Meter({ ledger, clock: systemClock }, { lease, reservedTokens }, usageBegin, undefined, bounds),
    told,
  };
}

/** What the answer asks of the request that it belongs to. */
function openWith(meter: Meter, promptTokens: number): OpenRequest<unknown> {
  const open: Partial<Record<keyof OpenRequest<unknown>, unknown>> = {
    call: { left: new Cancellation(), renderError: String },
    deps: { heartbeatMs: 10_000, stopping: new Stopping() },
    request: requestFor({}),
    promptTokens,
    meter,
    recorder: undefined,
    ownId: false,
    id: "chatcmpl-x",
    created: 1,
    ended: () => Promise.resolve(),
  };
  return open as unknown as OpenRequest<unknown>;
}

test("checkpoints and extensions of a stream come at the pieces at which they are due", async () => {
  for (const [reservedTokens, promptTokens, pieceMs] of [
    [60, 50, 30],
    [10, 50, 7],
    [120, 20, 130],
    [500, 3, 400],
  ] as const) {
    const [asked, each] = [meterOf(reservedTokens), meterOf(reservedTokens)];
    const source = new Source();
    relayTo(new Client(), source.dispatched, openWith(asked.meter, promptTokens));
    source.send(event(""));
    for (let piece = 1; piece <= 200; piece++) {
      nowMs += pieceMs;
      // The time that was read for the piece before is forgotten.
      await null;
      each.meter.delivered(promptTokens + piece, () => ({ promptTokens, completionTokens: piece, estimated: true }));
      source.send(event("word"));
    }
    source.send(event("", "stop") + done);
    await settled();
    expect(asked.told.length).toBeGreaterThan(2);
    expect(asked.told).toEqual(each.told);
  }
});
