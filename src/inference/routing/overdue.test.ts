// Tests when another deployment is asked because one takes far longer to begin an answer than ever before.
import { describe, expect, test } from "bun:test";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { until } from "../../../tests/support/headrace.ts";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { noSeal } from "../../../tests/support/no-seal.ts";
import { bodyOf } from "../../base/bytes/body-source.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { Deferred } from "../../base/deferred.ts";
import type { Engine, EngineResponse } from "../../domain/models/engine.ts";
import type { Model } from "../../domain/models/model.ts";
import type { ModelProcessState } from "../../domain/models/model-process-state.ts";
import type { Tried } from "../trail-writer.ts";
import type { Dispatched, Sender } from "./attempt.ts";
import { Capacity } from "./capacity.ts";
import { dispatch } from "./dispatch.ts";
import { BeginTimes } from "./overdue.ts";
import { Router } from "./route.ts";

const seconds = (ms: number | undefined) => (ms === undefined ? undefined : Math.round(ms / 1_000));

describe("the time limit of a deployment", () => {
  const after = (times: readonly number[], tokens = 100) => {
    const begins = new BeginTimes();
    for (const ms of times) begins.add(ms, tokens);
    return begins;
  };
  const usual = (ms: number) => Array<number>(16).fill(ms);

  test("has no time limit before 16 answers", () => {
    expect(after(usual(10).slice(1)).limitMs(100)).toBeUndefined();
    expect(after(usual(10)).limitMs(100)).toBe(120_000);
  });

  test("limits the time to five times the slowest answer, at least two minutes", () => {
    expect(seconds(after([...usual(10), 40_000]).limitMs(100))).toBe(200);
    expect(seconds(after(usual(500)).limitMs(100))).toBe(120);
  });

  test("forgets a slow answer only after hundreds of quick ones", () => {
    const slow = after([60_000, ...usual(10)]);
    expect(seconds(slow.limitMs(100))).toBeGreaterThan(270);
    for (let i = 0; i < 2_000; i++) slow.add(10, 100);
    expect(slow.limitMs(100)).toBe(120_000);
  });

  test("raises the time limit for prompts longer than any before", () => {
    expect(seconds(after(usual(500), 1_000).limitMs(10_000))).toBe(1_200);
    expect(seconds(after(usual(500), 1_000).limitMs(10))).toBe(120);
  });

  test("doubles the time limit with each miss and restores it after an answer", () => {
    const begins = after(usual(500));
    const bounds = Array.from({ length: 6 }, () => {
      begins.missed();
      return seconds(begins.limitMs(100));
    });
    expect(bounds).toEqual([240, 480, 960, 1_920, 1_920, 1_920]);
    begins.add(500, 100);
    expect(seconds(begins.limitMs(100))).toBe(120);
  });
});

interface Hole extends Engine {
  sent: { answer: Deferred<EngineResponse>; cancellation: Cancellation }[];
}

const response: EngineResponse = { status: 200, headers: new Headers(), body: bodyOf(new Uint8Array()) };

function engineNamed(name: string, more: Partial<Engine> = {}): Hole {
  const sent: Hole["sent"] = [];
  return {
    ...{ name, sent, redact: (text: string) => text, models: async () => [] },
    send(_request, cancellation) {
      const answer = new Deferred<EngineResponse>();
      cancellation.onCancel(() => answer.reject(cancellation.reason));
      sent.push({ answer, cancellation });
      return answer;
    },
    ...more,
  };
}

/**
 * Returns a model with these engines. The first one is asked first and has answered `known` requests in 100 ms each.
 */
async function worldOf(engines: readonly Hole[], known = 16) {
  const clock = manualClock();
  const router = new Router(clock, () => 0.5);
  const capacity = new Capacity({ clock, router, bounds: () => ({ maxWaiting: 512, maxWaitMs: 60_000 }) });
  const model: Model = {
    ...{ id: "m", created: 0, ownedBy: "", capabilities: undefined, context: undefined },
    ...{ environments: ["dev"], price: undefined },
    deployments: engines.map((engine, at) => ({ engine, model: "m", weight: 1_000_000 ** (1 - at) })),
  };
  const steps: Tried[] = [];
  const send = (cancellation = new Cancellation(), stream = true): Promise<Dispatched> => {
    const sender: Sender = {
      ...{
        requestId: "req_1",
        priority: "normal",
        accountId: "a",
        partyId: "a",
        memoryAccount: bufferedBytes.visitors,
      },
      ...{ recording: false, seal: noSeal, cancellation },
      workload: { promptTokens: 100, maxCompletionTokens: undefined, width: 1, prefix: () => undefined },
      ...{ modelNow: () => model, mayAsk: () => true, fallbackModels: () => [] },
      ...{ waits() {}, waited() {}, sending() {}, attempted() {} },
      tried(step) {
        steps.push(step);
        return null;
      },
    };
    const request = decodedRequest({ messages: [], stream });
    const sent = Promise.resolve(dispatch(request, model, { router, capacity, clock }, sender));
    sent.catch(() => {});
    return sent;
  };
  const first = engines[0] as Hole;
  for (let i = 0; i < known; i++) {
    const sent = send();
    clock.advance(100);
    first.sent.pop()?.answer.resolve(response);
    const dispatched = await sent;
    dispatched.firstByte();
    dispatched.answers();
    dispatched.done(false, 10);
  }
  /** Advances the clock and runs the watch's checks. */
  const pass = async (s: number) => {
    for (let i = 0; i < s; i += 5) {
      clock.advance(5_000);
      router.overdue.check();
    }
    await Bun.sleep(0);
  };
  return { clock, router, capacity, model, steps, send, pass };
}

// hardening: F39
describe("a deployment that takes a request and stays silent", () => {
  test("rests a deployment that is silent for two minutes, and tries the next one", async () => {
    const [hole, other] = [engineNamed("hole"), engineNamed("other")];
    const { send, pass, router, model, steps, capacity } = await worldOf([hole, other]);
    const sent = send();
    await pass(115);
    expect([hole.sent.length, other.sent.length]).toEqual([1, 0]);
    await pass(10);
    expect([hole.sent[0]?.cancellation.cancelled, other.sent.length]).toEqual([true, 1]);
    other.sent[0]?.answer.resolve(response);
    expect((await sent).deployment.engine.name).toBe("other");
    expect(router.resting(model.deployments[0] as (typeof model.deployments)[0])).toBe(true);
    expect(steps.map(({ result, said }) => [result, said])).toEqual([
      ["timed_out", "hole: no answer began within 120 s, far longer than any before"],
    ]);
    expect(capacity.figures(hole)[0]?.inFlight).toBe(0);
  });

  test.each<[string, readonly Hole[], number]>([
    ["alone", [engineNamed("hole")], 16],
    ["beside one that is away", [engineNamed("hole"), engineNamed("other", { accepts: false })], 16],
    ["without a history", [engineNamed("hole"), engineNamed("other")], 15],
    [
      "while it loads its model",
      [engineNamed("hole", { processState: (): ModelProcessState => "loading" }), engineNamed("other")],
      16,
    ],
  ])("keeps waiting for a silent deployment: %s", async (_how, engines, known) => {
    const { send, pass } = await worldOf(engines, known);
    send();
    await pass(590);
    expect(engines.map(({ sent }) => sent.length)).toEqual(engines.map((_, at) => (at === 0 ? 1 : 0)));
    expect(engines[0]?.sent[0]?.cancellation.cancelled).toBe(false);
  });

  test("keeps waiting for a silent deployment if the other one has no free slot", async () => {
    const [hole, other] = [engineNamed("hole"), engineNamed("other", { maxConcurrency: 1 })];
    const { send, pass, router } = await worldOf([hole, other]);
    send();
    router.drained = new Set(["hole"]);
    send();
    router.drained = new Set();
    expect(other.sent.length).toBe(1);
    await pass(300);
    expect([hole.sent[0]?.cancellation.cancelled, other.sent.length]).toEqual([false, 1]);
  });

  test.each([true, false])(
    "keeps waiting for a silent deployment that started another answer meanwhile; ended: %s",
    async (isOver) => {
      const [hole, other] = [engineNamed("hole"), engineNamed("other")];
      const { send, pass, clock, router } = await worldOf([hole, other]);
      send();
      clock.advance(1);
      router.drained = new Set(["other"]);
      const later = send();
      router.drained = new Set();
      hole.sent[1]?.answer.resolve(response);
      const dispatched = await later;
      dispatched.firstByte();
      if (isOver) dispatched.done(false);
      await pass(300);
      expect([hole.sent[0]?.cancellation.cancelled, other.sent.length]).toEqual([false, 0]);
    },
  );

  test("doubles the time limit while the deployment still sends an earlier answer", async () => {
    const [hole, other] = [engineNamed("hole"), engineNamed("other")];
    const { send, pass, clock, router } = await worldOf([hole, other]);
    router.drained = new Set(["other"]);
    const before = send();
    hole.sent[0]?.answer.resolve(response);
    (await before).firstByte();
    clock.advance(1);
    send();
    router.drained = new Set();
    await pass(235);
    expect(hole.sent[1]?.cancellation.cancelled).toBe(false);
    await pass(10);
    expect(hole.sent[1]?.cancellation.cancelled).toBe(true);
  });

  test("keeps waiting for a silent deployment if the answer comes as a whole", async () => {
    const [hole, other] = [engineNamed("hole"), engineNamed("other")];
    const { send, pass } = await worldOf([hole, other]);
    send(undefined, false);
    await pass(590);
    expect([hole.sent[0]?.cancellation.cancelled, other.sent.length]).toEqual([false, 0]);
  });

  test("keeps waiting for a silent deployment if only an overflow target could answer", async () => {
    const [hole, other] = [engineNamed("hole"), engineNamed("other")];
    const { send, pass, model } = await worldOf([hole, other]);
    const overflow = {
      ...{ to: [{ upstream: "other", cost: null, costOf: null }], afterSeconds: null, promptTokensAbove: null },
      ...{ hours: null, mostNanoUsdPerRequest: null, spend: null },
    };
    model.policies = { overflow };
    send();
    await pass(300);
    expect([hole.sent[0]?.cancellation.cancelled, other.sent.length]).toEqual([false, 0]);
  });

  test("does not count the time for which the process was frozen", async () => {
    const [hole, other] = [engineNamed("hole"), engineNamed("other")];
    const { send, pass, clock } = await worldOf([hole, other]);
    send();
    clock.advance(150_000);
    await pass(10);
    expect(hole.sent[0]?.cancellation.cancelled).toBe(false);
  });

  test("does not count the time before a refusal after which the deployment is asked again", async () => {
    const [hole, other] = [engineNamed("hole"), engineNamed("other")];
    const { send, pass } = await worldOf([hole, other]);
    send();
    await pass(100);
    const error = { message: "Unrecognized request argument supplied: stream_options" };
    hole.sent[0]?.answer.resolve({ ...response, status: 400, body: bodyOf(Buffer.from(JSON.stringify({ error }))) });
    await until(() => hole.sent.length === 2, "the repetition");
    await pass(115);
    expect([hole.sent[1]?.cancellation.cancelled, other.sent.length]).toEqual([false, 0]);
    await pass(10);
    expect([hole.sent[1]?.cancellation.cancelled, other.sent.length]).toEqual([true, 1]);
  });

  test("rejects and tries no other deployment when the client leaves", async () => {
    const [hole, other] = [engineNamed("hole"), engineNamed("other")];
    const { send, pass } = await worldOf([hole, other]);
    const clientGone = new Cancellation();
    const sent = send(clientGone);
    clientGone.cancel();
    await expect(sent).rejects.toBe(clientGone.reason);
    await pass(180);
    expect([hole.sent.length, other.sent.length]).toEqual([1, 0]);
  });
});
