// Tests how a node handles requests from the tunnel.
import { expect, test } from "bun:test";
import { RecordingSink, requestOf, ScriptedBody } from "../../tests/support/tunnel/tunnel-fixture.ts";
import { type BodySource, bodyOf, readAll } from "../base/bytes/body-source.ts";
import { AccountMemory, BufferedBytes, NoRoomError } from "../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../base/bytes/byte-span.ts";
import { Cancellation } from "../base/cancellation.ts";
import { systemClock } from "../base/clock.ts";
import { GatewayError } from "../base/errors.ts";
import type { Engine } from "../domain/models/engine.ts";
import type { Deployment, Model } from "../domain/models/model.ts";
import { Capacity } from "../inference/routing/capacity.ts";
import { Router } from "../inference/routing/route.ts";
import { LocalServing } from "./local-serving.ts";

const chatBody = '{"model":"m","messages":[{"role":"user","content":"Hello"}],"stream":true}';
const chunk = 'data: {"choices":[{"delta":{"content":"a"}}]}\n\n';

/** Sets up one engine whose body the test controls, unless `engines` are given. */
function setUp(formats?: Engine["formats"], engines?: readonly Engine[]) {
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
    deployments: (engines ?? [engine]).map((engine) => ({ engine, model: "m", weight: 1 })),
  };
  const router = new Router(systemClock);
  const serving = new LocalServing({
    catalog: { get: () => model, list: () => [model], isNode: () => false },
    router,
    capacity: new Capacity({ clock: systemClock, router, bounds: () => ({ maxWaiting: 8, maxWaitMs: 1_000 }) }),
    clock: systemClock,
    log: { info() {}, warn: (event, fields) => void warnings.push([event, fields]), error() {} },
    version: "1",
    demoModel: "demo",
    requestLimits: () => ({ bodyBytes: 1_000_000, depth: 8, messages: 8 }),
    renderError: ({ code }) => ({ status: 500, headers: {}, body: code }),
  });
  return {
    ...{ body, serving, warnings, router, model },
    isResting: () => router.resting(model.deployments[0] as Deployment),
  };
}

test.each([
  ["no room", noRoom(), false],
  ["the engine's", new GatewayError("upstream_error", "It broke off."), true],
])("rests an engine only for its own fault when its answer breaks off: %s", async (_, error, rests) => {
  const { body, serving, isResting } = setUp();
  body.onFlow = () => body.sink?.data(ByteSpan.of(chunk));
  const answer = await serving.handle(requestOf(chatBody), new Cancellation());
  const sink = new RecordingSink();
  answer.body.flow(sink);
  body.sink?.fail(error);
  expect(sink.error).toBe(error);
  expect([isResting(), serving.running]).toEqual([rests, 0]);
});

/**
 * Returns the answers of two engines of one model, in the order in which they are asked. `rests` says whether the first
 * one rests afterwards.
 */
async function answersOfTwo(first: string | (() => BodySource), second = chunk) {
  const bodies = [
    typeof first === "string" ? () => bodyOf(Buffer.from(first)) : first,
    () => bodyOf(Buffer.from(second)),
  ];
  const asked: string[] = [];
  const engines = ["e0", "e1"].map(
    (name): Engine => ({
      name,
      redact: (text) => text,
      models: async () => [],
      send: async () => ({ status: 200, headers: new Headers(), body: bodies[asked.push(name) - 1]?.() as BodySource }),
    }),
  );
  const { serving, router, model } = setUp(undefined, engines);
  const { status, body } = await serving.handle(requestOf(chatBody), new Cancellation());
  const text = (await readAll(body, 1e6, new Cancellation(), () => {})).text;
  const deployment = model.deployments.find(({ engine }) => engine.name === asked[0]);
  return {
    status,
    text,
    asked: asked.length,
    rests: router.resting(deployment as Deployment),
    running: serving.running,
  };
}

const answered = { status: 200, text: chunk, asked: 2, rests: true, running: 0 };
const whole = '{"id":"c","choices":[{"message":{"role":"assistant","content":"a"}}]}';

test.each([
  ["an HTML page", "\n<!DOCTYPE html><p>Sign in"],
  ["null", "null"],
  ["an error object", '{"error":{"message":"no memory"}}'],
  ["a cut object", '{"id":"c","choi'],
  ["an answer without a choice", '{"choices":[]}'],
  ["nothing", ""],
  ["heartbeats alone", ": ping\n\ndata:\n\n"],
  ["an end mark alone", "data: [DONE]\n\n"],
  ["an error as the first event", 'event: error\ndata: {"message":"no memory"}\n\n'],
  ["an error as the first event without a name", 'data: {"error":{"message":"no memory"}}\n\n'],
  ["a stream that breaks off before its first event", brokenOff(": ping\n\n")],
])("tries a node's next engine if a success is %s", async (_, first) => {
  expect(await answersOfTwo(first)).toEqual(answered);
});

test.each([
  ["events", chunk],
  ["events behind heartbeats", `: ping\n\n${chunk}`],
  ["a whole answer", whole],
  ["a whole answer with an empty error", whole.replace("{", '{"error":null,')],
  ["a whole answer of 200 KB", `{"data":[${"1,".repeat(100_000)}1]}`],
  ["sound", "RIFF\u0000WAVE"],
  ["an event of 100 KB", `data: {"choices":[{"delta":{"content":"${"a".repeat(100_000)}"}}]}\n\n`],
])("passes on %s unchanged from a node, and tries no other engine", async (_, first) => {
  expect(await answersOfTwo(first)).toEqual({ ...answered, text: first, asked: 1, rests: false });
});

test("answers 500 at a node if none of its engines answers", async () => {
  expect(await answersOfTwo("null", "<html>")).toMatchObject({
    status: 500,
    text: "upstream_error",
    asked: 2,
    running: 0,
  });
});

test("tries no other engine at a node for an error of the request itself", async () => {
  const fault = '{"error":{"message":"too long","code":"context_length_exceeded"}}';
  expect(await answersOfTwo(fault)).toMatchObject({ text: "invalid_request", asked: 1, rests: false, running: 0 });
});

test("stops a node's engine if its request is cancelled before the answer", async () => {
  const { body, serving, isResting } = setUp();
  const cancellation = new Cancellation();
  body.onFlow = () => cancellation.cancel();
  await expect(serving.handle(requestOf(chatBody), cancellation)).rejects.toBeDefined();
  expect([body.cancelled, isResting(), serving.running]).toEqual([true, false, 0]);
});

test("keeps a peeked body paused for a slow gateway until it resumes", async () => {
  const { body, serving } = setUp();
  body.onFlow = () => body.sink?.data(ByteSpan.of(chunk));
  const answer = await serving.handle(requestOf(chatBody), new Cancellation());
  const received: string[] = [];
  answer.body.flow({
    data: (bytes) => {
      received.push(bytes.text);
      answer.body.pause();
    },
    end: () => void received.push("end"),
    fail: () => void received.push("fail"),
  });
  expect([received, body.paused]).toEqual([[chunk], true]);
  answer.body.resume();
  expect(body.paused).toBe(false);
});

test("delivers nothing more of a body that is cancelled at its first piece", async () => {
  const { body, serving } = setUp();
  body.onFlow = () => {
    body.sink?.data(ByteSpan.of(": ping\n\n"));
    body.sink?.data(ByteSpan.of(chunk));
    body.sink?.end();
  };
  const answer = await serving.handle(requestOf(chatBody), new Cancellation());
  const received: string[] = [];
  answer.body.flow({
    data: (bytes) => {
      received.push(bytes.text);
      answer.body.cancel();
    },
    end: () => void received.push("end"),
    fail: () => void received.push("fail"),
  });
  expect(received).toEqual([": ping\n\n"]);
});

function brokenOff(start: string): () => BodySource {
  return () => {
    const body = new ScriptedBody();
    body.onFlow = () => {
      body.sink?.data(ByteSpan.of(start));
      body.sink?.fail(new Error("cut"));
    };
    return body;
  };
}

function noRoom(): GatewayError {
  const refusal = new BufferedBytes(1_000).memoryAccount(new AccountMemory()).take("received", 2_000);
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
