// Tests the steps of a request: each runs in the call that makes it possible, and the end is sent and settled once,
// after the ledger write.

import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { decodedRequest } from "../../tests/support/decoded-request.ts";
import { noDoubts } from "../../tests/support/no-doubts.ts";
import { noSeal } from "../../tests/support/no-seal.ts";
import { principalFor } from "../../tests/support/principal.ts";
import { Client, done, event } from "../../tests/support/relay.ts";
import { bodyOf } from "../base/bytes/body-source.ts";
import { bufferedBytes } from "../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../base/bytes/byte-span.ts";
import { type CancelListener, Cancellation } from "../base/cancellation.ts";
import { exactMs, systemClock } from "../base/clock.ts";
import { Deferred, whenSettled } from "../base/deferred.ts";
import { GatewayError } from "../base/errors.ts";
import type { Engine, EngineResponse } from "../domain/models/engine.ts";
import type { Model } from "../domain/models/model.ts";
import type { UsageEnd, UsageOutcome } from "../domain/usage/usage.ts";
import type { InferenceAnswer, InferenceCall, InferenceDeps } from "./call.ts";
import { Capacity } from "./routing/capacity.ts";
import { Router } from "./routing/route.ts";
import { run } from "./run.ts";
import { type Stoppable, Stopping } from "./stopping.ts";

const whole = JSON.stringify({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1_800_000_000,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
});

function response(body: string, type = "application/json", status = 200): EngineResponse {
  return { status, headers: new Headers({ "content-type": type }), body: bodyOf(Buffer.from(body)) };
}

/** Tracks the objects that listen for the stop: an ended request must not remain among them. */
class CountedStopping extends Stopping {
  readonly held = new Set<Stoppable>();
  override add(one: Stoppable): void {
    this.held.add(one);
    super.add(one);
  }
  override remove(one: Stoppable): void {
    this.held.delete(one);
    super.remove(one);
  }
}

class CountedCancellation extends Cancellation {
  readonly held = new Set<CancelListener>();
  override onCancel(listener: CancelListener): void {
    this.held.add(listener);
    super.onCancel(listener);
  }
  override off(listener: CancelListener): void {
    this.held.delete(listener);
    super.off(listener);
  }
}

/** Starts a request whose waits the test resolves one by one. */
function start({ stream = false, left: clientGone = new CountedCancellation(), onAnswer = () => {} } = {}) {
  const begun = new Deferred<void>();
  const kept = new Deferred<void>();
  const sent: Deferred<EngineResponse>[] = [];
  const settled: UsageEnd[] = [];
  const given: { answer?: InferenceAnswer; error?: unknown }[] = [];
  const ends: unknown[] = [];
  const stopping = new CountedStopping();
  const engine: Engine = {
    name: "e",
    redact: (text) => text,
    models: async () => [],
    send(_request, cancellation) {
      const answer = new Deferred<EngineResponse>();
      cancellation.onCancel(() => answer.reject(cancellation.reason));
      sent.push(answer);
      return answer;
    },
  };
  const model: Model = {
    id: "m",
    created: 0,
    ownedBy: "",
    capabilities: undefined,
    context: undefined,
    environments: ["live"],
    price: undefined,
    deployments: [{ engine, model: "m", weight: 1 }],
  };
  const router = new Router(systemClock);
  const deps: InferenceDeps = {
    catalog: { find: () => model, get: () => model, whenComplete: async () => {} },
    router,
    capacity: new Capacity({ clock: systemClock, router, bounds: () => ({ maxWaiting: 1, maxWaitMs: 1_000 }) }),
    admitter: {
      admit: () => ({
        lease: { extend() {}, settle() {} },
        reservedTokens: 10,
        status: { requests: undefined, tokens: undefined },
      }),
      admitDearer: () => undefined,
      learn() {},
      learnCached() {},
    },
    requestTags: { of: () => undefined },
    ledger: {
      begin: () => ({
        begun,
        progress() {},
        settle(end: UsageEnd) {
          settled.push(end);
          return kept;
        },
      }),
    },
    refusalCounts: { count() {} },
    usageDoubts: noDoubts,
    chatWriter: { retentionDays: 0, add() {}, notStored() {}, flush: async () => {} },
    responseKeeper: { retentionDays: 0, requireRoom: async () => {}, keep: async () => true, notStored() {} },
    // The clock is exact, because the timers of a test advance within one tick.
    clock: { ...systemClock, monotonicMs: exactMs },
    stopping,
    heartbeatMs: 1_000,
    sealFor: () => noSeal,
  };
  const call: InferenceCall<InferenceAnswer> = {
    request: decodedRequest({ messages: [{ role: "user", content: "Hello" }], stream }),
    principal: principalFor(),
    requestId: "req_1",
    tagHeader: null,
    memoryAccount: bufferedBytes.visitors,
    clientGone: clientGone,
    renderError: ({ code }) => JSON.stringify({ error: { code } }),
    onLimits() {},
    onServedBy() {},
    onIgnored() {},
    onCapped() {},
    onLedger() {},
    onEnd: (outcome, _usage, error) => void ends.push([outcome, error instanceof GatewayError ? error.code : error]),
    answer(answer) {
      onAnswer();
      return answer;
    },
  };
  whenSettled(
    run(call, deps),
    (answer) => given.push({ answer }),
    (error) => given.push({ error }),
  );
  const held = () => stopping.held.size + clientGone.held.size;
  return { begun, kept, sent, settled, given, ends, stopping, left: clientGone, held };
}

type Started = ReturnType<typeof start>;

/** Starts a request and advances it until the engine was asked. */
function asked(options?: Parameters<typeof start>[0]): Started & { engine: Deferred<EngineResponse> } {
  const started = start(options);
  started.begun.resolve();
  const [engine] = started.sent;
  if (!engine) throw new Error("No engine was asked.");
  return { ...started, engine };
}

/** Returns a client that reads a streamed answer. */
function clientOf(answer: InferenceAnswer | undefined): Client {
  if (typeof answer !== "function") throw new Error("No stream was begun.");
  const client = new Client();
  answer(client);
  return client;
}

test("runs the steps of a whole answer synchronously, and delivers it once the ledger has it", () => {
  const { begun, kept, sent, settled, given, ends, held } = start();
  expect(sent).toHaveLength(0);
  begun.resolve();
  expect(sent).toHaveLength(1);
  sent[0]?.resolve(response(whole));
  expect(settled).toMatchObject([{ outcome: "completed", promptTokens: 3, completionTokens: 4, upstream: "e" }]);
  expect([ends, given]).toEqual([[["completed", undefined]], []]);
  kept.resolve();
  expect(given).toEqual([{ answer: ByteSpan.of(whole) }]);
  expect(held()).toBe(0);
});

test("begins a stream when the engine's headers arrive, and delivers its end once the ledger has it", () => {
  const { engine, kept, given, settled, held } = asked({ stream: true });
  engine.resolve(response(event("Hello", "stop") + done, "text/event-stream"));
  const client = clientOf(given[0]?.answer);
  expect(settled).toMatchObject([{ outcome: "completed", completionTokens: 1 }]);
  expect(client.text).toBe("");
  kept.resolve();
  expect([client.text, client.ended]).toEqual([event("Hello", "stop") + done, true]);
  expect(held()).toBe(0);
});

describe("a stream whose engine is silent", () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  function silent(): Started & { engine: Deferred<EngineResponse>; client: Client } {
    const started = asked({ stream: true });
    jest.advanceTimersByTime(900);
    expect(started.given).toEqual([]);
    jest.advanceTimersByTime(200);
    return { ...started, client: clientOf(started.given[0]?.answer) };
  }

  test("begins a stream while its engine is silent, and goes on when the engine answers", () => {
    const { engine, kept, client, held } = silent();
    engine.resolve(response(event("Hello", "stop") + done, "text/event-stream"));
    kept.resolve();
    expect([client.text, client.ended, held()]).toEqual([event("Hello", "stop") + done, true, 0]);
  });

  test("reports the failure of a stream that began in silence as an event", () => {
    const { engine, kept, client, settled, held } = silent();
    engine.reject(new GatewayError("upstream_error", "It failed."));
    kept.resolve();
    expect(settled).toMatchObject([{ outcome: "failed", errorCode: "upstream_error", promptTokens: 0 }]);
    expect([client.text, client.ended, held()]).toEqual(['data: {"error":{"code":"upstream_error"}}\n\n', true, 0]);
  });

  test("settles once if the client leaves as a stream begins in silence", () => {
    const clientGone = new CountedCancellation();
    const { settled, ends, given, kept, held } = asked({
      stream: true,
      left: clientGone,
      onAnswer: () => clientGone.cancel(),
    });
    jest.advanceTimersByTime(1_100);
    clientOf(given[0]?.answer);
    kept.resolve();
    expect(settled).toMatchObject([{ outcome: "cancelled" }]);
    expect([ends.length, held()]).toEqual([1, 0]);
  });

  test("ends a stream that began in silence when the server shuts down", () => {
    const { stopping, kept, client, settled, held } = silent();
    stopping.begin();
    kept.resolve();
    expect(settled).toMatchObject([{ outcome: "failed", errorCode: "service_unavailable" }]);
    expect([client.ended, held()]).toEqual([true, 0]);
  });
});

describe("requests without an answer settle once and report their error after the ledger write", () => {
  const left = expect.objectContaining({ name: "AbortError" });
  const coded = (code: string) => expect.objectContaining({ code });
  const cases: [name: string, end: (started: Started) => void, outcome: UsageOutcome, error: unknown][] = [
    ["its engine fails", ({ sent }) => sent[0]?.reject(new Error("boom")), "failed", expect.any(Error)],
    ["its engine refuses it", ({ sent }) => sent[0]?.resolve(response("{}", "", 422)), "failed", expect.any(Error)],
    ["its client leaves", (started) => started.left.cancel(), "cancelled", left],
    ["the server stops", (started) => started.stopping.begin(), "failed", coded("service_unavailable")],
  ];
  for (const stream of [false, true]) {
    test.each(cases)(`%s (stream: ${stream})`, async (_name, end, outcome, error) => {
      const started = asked({ stream });
      end(started);
      // The body of a refusal is read before the request ends.
      await Bun.sleep(0);
      const { settled, given, kept, ends, held } = started;
      expect([settled.length, settled[0]?.outcome, ends.length, given.length]).toEqual([1, outcome, 1, 0]);
      kept.resolve();
      expect(given).toEqual([{ error }]);
      expect(held()).toBe(0);
    });
  }

  test("settles an unreadable answer once and reports the error after the ledger write", () => {
    const { engine, settled, given, kept, held } = asked();
    engine.resolve(response("no JSON"));
    expect(settled).toMatchObject([{ outcome: "failed", errorCode: "upstream_error" }]);
    kept.resolve();
    expect(given).toEqual([{ error: coded("upstream_error") }]);
    expect(held()).toBe(0);
  });

  test("settles a gateway fault during an answer once and reports it after the ledger write", () => {
    const { engine, settled, given, kept, held } = asked();
    const body = {
      ...bodyOf(Buffer.from(whole)),
      flow: () => {
        throw new Error("boom");
      },
    };
    engine.resolve({ ...response(whole), body });
    expect(settled).toMatchObject([{ outcome: "failed", errorCode: null }]);
    kept.resolve();
    expect(given).toEqual([{ error: expect.any(Error) }]);
    expect(held()).toBe(0);
  });

  test("sends no request to an engine if the ledger fails", () => {
    const { begun, sent, given, kept, held } = start();
    begun.reject(new GatewayError("service_unavailable", "The disk is full."));
    kept.resolve();
    expect(sent).toHaveLength(0);
    expect(given).toEqual([{ error: coded("service_unavailable") }]);
    expect(held()).toBe(0);
  });

  test("sends no request to an engine if the client has already left", () => {
    const gone = new CountedCancellation();
    gone.cancel();
    const { begun, sent, given, kept, settled } = start({ left: gone });
    begun.resolve();
    kept.resolve();
    expect(sent).toHaveLength(0);
    expect(settled).toMatchObject([{ outcome: "cancelled", promptTokens: 0 }]);
    expect(given).toEqual([{ error: left }]);
  });
});
