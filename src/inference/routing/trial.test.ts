// Tests that however the request that tests a deployment after its suspension ends, the deployment can be tested again.
import { expect, test } from "bun:test";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { noSeal } from "../../../tests/support/no-seal.ts";
import { bodyOf } from "../../base/bytes/body-source.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { Deferred } from "../../base/deferred.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Engine, EngineResponse } from "../../domain/models/engine.ts";
import type { Model } from "../../domain/models/model.ts";
import type { Dispatched, Sender } from "./attempt.ts";
import { Capacity } from "./capacity.ts";
import { dispatch } from "./dispatch.ts";
import { Router } from "./route.ts";

const response = (status: number): EngineResponse => ({
  status,
  headers: new Headers(),
  body: bodyOf(new Uint8Array()),
});

/** Returns a model with a deployment whose suspension is over, and another one that cannot serve requests. */
function restedWorld() {
  const clock = manualClock();
  const router = new Router(clock, () => 0.5);
  const capacity = new Capacity({ clock, router, bounds: () => ({ maxWaiting: 0, maxWaitMs: 1_000 }) });
  let answer = new Deferred<EngineResponse>();
  const engine = (name: string): Engine => ({
    ...{ name, redact: (text: string) => text, models: async () => [] },
    send(_request, cancellation) {
      const sent = answer;
      cancellation.onCancel(() => sent.reject(cancellation.reason));
      return sent;
    },
  });
  const deployments = ["rested", "other"].map((name) => ({ engine: engine(name), model: "m", weight: 1 }));
  const [rested, other] = deployments as [(typeof deployments)[0], (typeof deployments)[0]];
  const model: Model = {
    ...{ id: "m", created: 0, ownedBy: "", capabilities: undefined, context: undefined },
    ...{ environments: ["dev"], price: undefined, deployments },
  };
  router.failed(rested, "deployment");
  router.drained = new Set([other.engine.name]);
  clock.advance(2_500);
  const received: unknown[] = [];
  const send = (cancellation: Cancellation): Promise<Dispatched> => {
    answer = new Deferred();
    const sender: Sender = {
      ...{
        requestId: "req_1",
        priority: "normal",
        accountId: "a",
        partyId: "a",
        memoryAccount: bufferedBytes.visitors,
      },
      ...{ recording: false, seal: noSeal, cancellation },
      workload: { promptTokens: 1, maxCompletionTokens: undefined, width: 1, prefix: () => undefined },
      modelNow: () => model,
      mayAsk: () => true,
      fallbackModels: () => [],
      waits() {},
      waited() {},
      sending() {},
      attempted: (_deployment, error) => void received.push(error),
      tried: () => null,
    };
    return Promise.resolve(dispatch(decodedRequest({ messages: [] }), model, { router, capacity, clock }, sender));
  };
  // Both deployments are candidates again, and the other one is suspended.
  router.drained = new Set();
  router.failed(other, "deployment");
  return {
    router,
    rested,
    received,
    send,
    answer: (given: EngineResponse) => answer.resolve(given),
    fail: (error: unknown) => answer.reject(error),
  };
}

test.each(["before the head of the answer", "before its first event"])(
  "gives up the claim of a trial whose client leaves %s, and tries with the next request",
  async (when) => {
    const world = restedWorld();
    const clientGone = new Cancellation();
    const sent = world.send(clientGone);
    expect(world.router.state(world.rested)).toBe("trying");
    if (when === "before the head of the answer") {
      clientGone.cancel();
      await expect(sent).rejects.toBe(clientGone.reason);
    } else {
      world.answer(response(200));
      const dispatched = await sent;
      clientGone.cancel();
      dispatched.done(false);
    }
    expect(world.router.state(world.rested)).toBe("ready");
    expect(world.received).toEqual([clientGone.reason]);
    world.send(new Cancellation()).catch(() => {});
    expect(world.router.state(world.rested)).toBe("trying");
  },
);

test("gives up the claim of a trial that ends by a gateway fault", async () => {
  const world = restedWorld();
  const fault = new Error("a fault of ours");
  const sent = world.send(new Cancellation());
  world.fail(fault);
  await expect(sent).rejects.toBe(fault);
  expect(world.router.state(world.rested)).toBe("ready");
});

test("counts a trial as a success only once its answer is accepted", async () => {
  const world = restedWorld();
  const sent = world.send(new Cancellation());
  world.answer(response(200));
  const dispatched = await sent;
  expect([world.router.state(world.rested), world.received]).toEqual(["trying", []]);
  dispatched.answers();
  dispatched.answers();
  expect([world.router.state(world.rested), world.received.length, world.received[0]]).toEqual(["ok", 1, undefined]);
  dispatched.done(false);
});

test("rests the deployment again, for longer, after a trial without an answer", async () => {
  const world = restedWorld();
  const sent = world.send(new Cancellation());
  world.answer(response(200));
  const error = new GatewayError("upstream_error", "no answer");
  const next = Promise.resolve((await sent).another(error, false));
  expect([world.router.state(world.rested), world.received]).toEqual(["resting", [error]]);
  next.catch(() => {});
});

test("counts a trial as a success if the engine refuses the request itself", async () => {
  const world = restedWorld();
  const sent = world.send(new Cancellation());
  world.answer(response(400));
  await expect(sent).rejects.toMatchObject({ code: "invalid_request" });
  expect(world.router.state(world.rested)).toBe("ok");
});
