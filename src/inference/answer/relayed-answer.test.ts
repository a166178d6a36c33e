// Tests what a stream reports to the meter: although only due pieces are reported, the charges are as if each piece
// were.
import { expect, test } from "bun:test";
import { type ManualClock, manualClock } from "../../../tests/support/manual-clock.ts";
import { Client, done, event, requestFor, Source, settled } from "../../../tests/support/relay.ts";
import { usageBegin } from "../../../tests/support/usage-begin.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { noIndex } from "../../base/indexed-set.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { Meter } from "../../policy/meter.ts";
import { Stopping } from "../stopping.ts";
import { type RelayedRequest, relayTo } from "./relayed-answer.ts";

/** Returns a meter and the log of what it reported to its ledger and its lease, with times. */
function meterOf(reservedTokens: number, clock: ManualClock): { meter: Meter; reported: unknown[] } {
  const received: unknown[] = [];
  const ledger = {
    begin: () => ({
      begun: Promise.resolve(),
      progress: (usage: TokenUsage) => void received.push(["checkpoint", clock.monotonicMs(), usage.completionTokens]),
      settle: () => Promise.resolve(),
    }),
  };
  const lease = {
    extend: (tokens: number) => void received.push(["extension", clock.monotonicMs(), tokens]),
    settle: () => {},
  };
  const bounds = { promptTokens: 1_000, completionTokens: 1_000 };
  return {
    meter: new Meter({ ledger, clock }, { lease, reservedTokens }, usageBegin, undefined, bounds),
    reported: received,
  };
}

/** Returns a request with the members that the relayed answer uses. */
function openWith(meter: Meter, promptTokens: number, clock: ManualClock): RelayedRequest {
  return {
    call: { clientGone: new Cancellation(), memoryAccount: bufferedBytes.visitors, renderError: String },
    deps: { clock, heartbeatMs: 10_000, stopping: new Stopping() },
    request: requestFor({}),
    promptTokens,
    meter,
    recorder: undefined,
    cached: undefined,
    trace: undefined,
    cancellation: new Cancellation(),
    cancelled() {},
    ownId: false,
    id: "chatcmpl-x",
    created: 1,
    answers() {},
    begins: (answer) => {
      if (typeof answer === "function") answer(new Client());
    },
    unbegun() {},
    another: (_dispatched, error) => Promise.reject(error),
    setIndex: noIndex,
    stop() {},
    ended: () => Promise.resolve(),
    endedWithoutAnswer: () => Promise.resolve(),
    noAnswer() {},
  };
}

test("writes checkpoints and lease extensions of a stream at the pieces where they are due", async () => {
  for (const [reservedTokens, promptTokens, pieceMs] of [
    [60, 50, 30],
    [10, 50, 7],
    [120, 20, 130],
    [500, 3, 400],
  ] as const) {
    const clock = manualClock();
    const [asked, each] = [meterOf(reservedTokens, clock), meterOf(reservedTokens, clock)];
    const source = new Source();
    relayTo(source.dispatched, openWith(asked.meter, promptTokens, clock));
    source.send(event(""));
    for (let piece = 1; piece <= 200; piece++) {
      clock.advance(pieceMs);
      each.meter.delivered(promptTokens + piece, () => ({ promptTokens, completionTokens: piece, estimated: true }));
      source.send(event("word"));
    }
    source.send(event("", "stop") + done);
    await settled();
    expect(asked.reported.length).toBeGreaterThan(2);
    expect(asked.reported).toEqual(each.reported);
  }
});
