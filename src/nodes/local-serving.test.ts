// A node's treatment of requests that come through the tunnel.
import { expect, test } from "bun:test";
import { decodedRequest } from "../../tests/support/decoded-request.ts";
import { RecordingSink, requestOf, ScriptedBody } from "../../tests/support/tunnel/tunnel-fixture.ts";
import { AccountBytes, HeldBytes, NoRoomError } from "../base/bytes/held-bytes.ts";
import { Cancellation } from "../base/cancellation.ts";
import { systemClock } from "../base/clock.ts";
import { GatewayError } from "../base/errors.ts";
import type { Engine } from "../domain/models/engine.ts";
import type { Model } from "../domain/models/model.ts";
import { Capacity } from "../inference/routing/capacity.ts";
import { Router } from "../inference/routing/route.ts";
import { LocalServing } from "./local-serving.ts";

/** One engine, whose body the test gives. */
function setUp(formats?: Engine["formats"]) {
  const body = new ScriptedBody();
  const engine: Engine = {
    name: "e",
    redact: (text) => text,
    models: async () => [],
    send: async () => ({ status: 200, headers: new Headers(), body }),
    ...(formats && { formats }),
  };
  const warnings: unknown[] = [];
  const model: Model = {
    id: "m",
    created: 0,
    ownedBy: "",
    capabilities: undefined,
    context: undefined,
    environments: ["dev"],
    price: undefined,
    deployments: [{ engine, model: "m", weight: 1 }],
  };
  const router = new Router(systemClock);
  const serving = new LocalServing({
    catalog: { get: () => model, list: () => [model], isNode: () => false },
    router,
    capacity: new Capacity({ clock: systemClock, router, bounds: () => ({ maxWaiting: 8, longestWaitMs: 1_000 }) }),
    clock: systemClock,
    log: { info() {}, warn: (event, fields) => void warnings.push([event, fields]), error() {} },
    version: "1",
    demoModel: "demo",
    decode: () => decodedRequest({ model: "m", messages: [], stream: true }),
    renderError: ({ code }) => ({ status: 500, headers: {}, body: code }),
  });
  return { body, serving, warnings, isResting: () => router.resting(model.deployments[0] as Model["deployments"][0]) };
}

test.each([
  ["no room", noRoom(), false],
  ["the engine's", new GatewayError("upstream_error", "It broke off."), true],
])("an engine whose answer breaks off rests only where the fault is its own: %s", async (_, error, rests) => {
  const { body, serving, isResting } = setUp();
  const answer = await serving.handle(requestOf("{}"), new Cancellation());
  const sink = new RecordingSink();
  answer.body.flow(sink);
  body.sink?.fail(error);
  expect(sink.error).toBe(error);
  expect([isResting(), serving.running]).toEqual([rests, 0]);
});

function noRoom(): GatewayError {
  const refusal = new HeldBytes(1_000).holder(new AccountBytes()).take("received", 2_000);
  if (!(refusal instanceof NoRoomError)) throw new Error("There is room.");
  return refusal;
}

test("logs once that a model is not offered because its upstream speaks no chat completions", () => {
  const { serving, warnings } = setUp({ message: "whole" });
  expect([serving.announcement().models, serving.announcement().models]).toEqual([[], []]);
  expect(warnings).toEqual([["node_model_not_offered", expect.objectContaining({ model: "m", upstream: "e" })]]);
  const offered = setUp();
  expect(offered.serving.announcement().models).toHaveLength(1);
  expect(offered.warnings).toEqual([]);
});
