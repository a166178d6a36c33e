// Tests that an admitted request reports its end once, settles once, and releases its slot, however it ends.

import { beforeEach, describe, expect, test } from "bun:test";
import { decodedRequest } from "../../tests/support/decoded-request.ts";
import { noDoubts } from "../../tests/support/no-doubts.ts";
import { noSeal } from "../../tests/support/no-seal.ts";
import { principalFor } from "../../tests/support/principal.ts";
import { done, event } from "../../tests/support/relay.ts";
import { type BodySink, type BodySource, bodyOf } from "../base/bytes/body-source.ts";
import { bufferedBytes, NoRoomError } from "../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../base/bytes/byte-span.ts";
import type { ClientStream } from "../base/bytes/client-stream.ts";
import { Cancellation } from "../base/cancellation.ts";
import { systemClock } from "../base/clock.ts";
import { Deferred } from "../base/deferred.ts";
import type { GatewayError } from "../base/errors.ts";
import type { Engine, EngineResponse } from "../domain/models/engine.ts";
import type { Model } from "../domain/models/model.ts";
import type { UsageEnd } from "../domain/usage/usage.ts";
import type { InferenceAnswer, InferenceCall, InferenceDeps } from "./call.ts";
import { Capacity } from "./routing/capacity.ts";
import { Router } from "./routing/route.ts";
import { run } from "./run.ts";
import { Stopping } from "./stopping.ts";

let capacity: Capacity;
let deps: InferenceDeps;
/** The ends that were recorded in the ledger, and the number of settled leases. */
let ends: UsageEnd[];
let settledLeases: number;
/** Number of engine bodies that were cancelled because nothing wanted them any more. */
let cancelledBodies: number;

const answer = JSON.stringify({
  choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 },
});

function respond(status: number, body: BodySource): EngineResponse {
  return { status, headers: new Headers(), body };
}

/** A body that arrives after its head, in two pieces. */
function inPieces(bytes: Uint8Array): BodySource {
  let isCancelled = false;
  const give = async (sink: BodySink) => {
    const half = bytes.length >> 1;
    for (const piece of [bytes.subarray(0, half), bytes.subarray(half)]) {
      await afterSteps(2);
      if (!isCancelled) sink.data(ByteSpan.of(piece));
    }
    if (!isCancelled) sink.end();
  };
  return {
    flow: (sink) => void give(sink),
    pause() {},
    resume() {},
    cancel() {
      isCancelled = true;
      cancelledBodies++;
    },
  };
}

function engineThat(name: string, send: Engine["send"]): Engine {
  return { name, redact: (text) => text, models: async () => [], send };
}

function modelOn(id: string, engine: Engine, fallbacks?: string[]): Model {
  return {
    id,
    created: 0,
    ownedBy: "",
    capabilities: undefined,
    context: undefined,
    environments: ["live"],
    price: undefined,
    deployments: [{ engine, model: id, weight: 1 }],
    ...(fallbacks ? { fallbacks } : {}),
  };
}

/** Returns a promise that resolves after `steps` microtasks. */
function inSteps<Value>(steps: number, value: Value): Deferred<Value> {
  const later = new Deferred<Value>();
  void afterSteps(steps).then(() => later.resolve(value));
  return later;
}

async function afterSteps(steps: number): Promise<void> {
  for (let step = 0; step < steps; step++) await undefined;
}

const broken = engineThat("broken", async () => respond(500, bodyOf(Buffer.from("{}"))));
const working = engineThat("working", ({ stream }) =>
  inSteps(2, respond(200, inPieces(Buffer.from(stream ? event("Hi", "stop") + done : answer)))),
);

function reset(): void {
  ends = [];
  settledLeases = 0;
  cancelledBodies = 0;
  const router = new Router(systemClock);
  const bounds = () => ({ maxWaiting: 8, maxWaitMs: 1_000 });
  capacity = new Capacity({ clock: systemClock, router, bounds });
  const models = [modelOn("m", broken, ["stand-in"]), modelOn("stand-in", working)];
  const modelOf = (id: string) => models.find((one) => one.id === (id === "alias" ? "stand-in" : id));
  let isSettled = false;
  deps = {
    catalog: { find: modelOf, get: modelOf, whenComplete: async () => {} },
    router,
    capacity,
    admitter: {
      admit: () => ({
        lease: { extend() {}, settle: () => void settledLeases++ },
        reservedTokens: 1,
        status: { requests: undefined, tokens: undefined },
      }),
      admitDearer: () => undefined,
      learn() {},
      learnCached() {},
    },
    requestTags: { of: () => undefined },
    ledger: {
      begin: () => ({
        begun: inSteps(2, undefined),
        progress() {},
        settle(end) {
          if (!isSettled) ends.push(end);
          isSettled = true;
          return inSteps(2, undefined);
        },
      }),
    },
    refusalCounts: { count() {} },
    usageDoubts: noDoubts,
    chatWriter: { retentionDays: 0, add() {}, notStored() {}, flush: async () => {} },
    responseKeeper: { retentionDays: 0, requireRoom: async () => {}, keep: async () => true, notStored() {} },
    clock: systemClock,
    stopping: new Stopping(),
    heartbeatMs: 1_000,
    sealFor: () => noSeal,
  };
}

beforeEach(reset);

/** A client that counts how often its stream was ended. */
class TakingClient implements ClientStream {
  ended = 0;
  onDrain: (() => void) | undefined;
  write(): boolean {
    return true;
  }
  writeAround(): boolean {
    return true;
  }
  end(): void {
    this.ended++;
  }
  abort(): void {
    this.ended++;
  }
}

function callFor(more: Partial<InferenceCall<unknown>>, stream: boolean): InferenceCall<unknown> {
  return {
    request: decodedRequest({ messages: [], stream }),
    principal: principalFor(),
    requestId: "req_1",
    tagHeader: null,
    memoryAccount: bufferedBytes.visitors,
    clientGone: new Cancellation(),
    renderError: (error: GatewayError) => error.message,
    onLimits() {},
    onServedBy() {},
    onIgnored() {},
    onCapped() {},
    onLedger() {},
    onEnd() {},
    answer: (given) => given,
    ...more,
  };
}

const inFlight = () => [broken, working].map((engine) => capacity.figures(engine)[0]?.inFlight);

test("settles once and reports the fallback that served the request", async () => {
  const servedBy: string[] = [];
  const call = callFor({ onServedBy: (model) => void servedBy.push(model) }, false);
  expect(JSON.parse(String(await run(call, deps)))).toMatchObject({ model: "stand-in" });
  expect([servedBy, settledLeases, ends.map(({ outcome }) => outcome)]).toEqual([["stand-in"], 1, ["completed"]]);
  expect(inFlight()).toEqual([0, 0]);
});

test("reports the model and no fallback when the request names an alias", async () => {
  const served: string[] = [];
  const courses: unknown[] = [];
  const observer = {
    inferenceBegan: ({ model }: { model: string }) => void courses.push(model),
    inferenceEnded: (_begin: unknown, _end: unknown, { fallbackModel }: { fallbackModel?: string | undefined }) =>
      void courses.push(fallbackModel),
    inferenceRefused() {},
    attempted() {},
  };
  const request = decodedRequest({ model: "alias", messages: [] });
  const call = callFor({ request, onServedBy: (model) => void served.push(model) }, false);
  expect(JSON.parse(String(await run(call, { ...deps, observer })))).toMatchObject({ model: "stand-in" });
  expect([served, courses]).toEqual([["stand-in"], ["stand-in", undefined]]);
});

test.each([
  ["onServedBy", false, 0],
  ["onServedBy", true, 1],
  ["answer", false, 0],
  ["answer", true, 1],
] as const)(
  "ends the request once if the gateway fails while it is answered (%s, stream: %p)",
  async (where, stream, unread) => {
    const fault = new Error("a fault of ours");
    const failing = () => {
      throw fault;
    };
    const answered = Promise.resolve(run(callFor({ [where]: failing }, stream), deps));
    await expect(Promise.race([answered, Bun.sleep(500)])).rejects.toBe(fault);
    expect(ends).toHaveLength(1);
    expect(settledLeases).toBeGreaterThan(0);
    // Otherwise the unread body would block its connection forever.
    expect(cancelledBodies).toBe(unread);
    expect(inFlight()).toEqual([0, 0]);
  },
);

test("records an answer beyond the key's memory share as no_room rather than an upstream fault", async () => {
  const full = new NoRoomError("rate_limit_exceeded", "The key holds too much.");
  const answered = Promise.resolve(run(callFor({ memoryAccount: { take: () => full, release() {} } }, false), deps));
  await expect(answered).rejects.toBe(full);
  expect(ends[0]?.trail?.map(({ result }) => result)).toEqual(["refused", "no_room"]);
});

describe.each([false, true])("stream: %p", (stream) => {
  test.each(["its client leaves", "its client is cut off", "the server ends"])(
    "%s at any step: the request ends once and holds nothing",
    async (how) => {
      const outcomes = new Set<string>();
      for (let step = 0; step < 60; step++) {
        reset();
        const clientGone = new Cancellation();
        const client = new TakingClient();
        const answer = (given: InferenceAnswer) => {
          if (typeof given === "function") given(client);
          else client.end();
          return "answered";
        };
        const answered = Promise.resolve(run(callFor({ clientGone: clientGone, answer }, stream), deps)).catch(() =>
          client.end(),
        );
        await afterSteps(step);
        if (how === "its client leaves") clientGone.cancel();
        else if (how === "its client is cut off")
          clientGone.cancel(new NoRoomError("rate_limit_exceeded", "Too much."));
        else deps.stopping.begin();
        await answered;
        for (let waits = 0; waits < 50 && ends.length === 0; waits++) await Bun.sleep(1);
        await Bun.sleep(0);
        expect([step, ends.length, settledLeases > 0, inFlight().filter(Boolean)]).toEqual([step, 1, true, []]);
        if (how === "the server ends") expect([step, client.ended]).toEqual([step, 1]);
        outcomes.add(ends[0]?.outcome ?? "none");
      }
      // At some steps the request has already completed.
      expect([...outcomes].toSorted()).toEqual(
        ["completed", how === "its client leaves" ? "cancelled" : "failed"].toSorted(),
      );
    },
  );
});
