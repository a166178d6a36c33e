// Tests how one request reaches an engine: candidates, waiting, retries, and slots that are always released.

import { beforeEach, describe, expect, test } from "bun:test";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { noSeal } from "../../../tests/support/no-seal.ts";
import { bodyOf } from "../../base/bytes/body-source.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { systemClock } from "../../base/clock.ts";
import { Deferred, whenSettled } from "../../base/deferred.ts";
import { GatewayError } from "../../base/errors.ts";
import { type Engine, type EngineRequest, type EngineResponse, NotRunningError } from "../../domain/models/engine.ts";
import type { Model } from "../../domain/models/model.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import type { Tried } from "../trail-writer.ts";
import type { Dispatched, Sender } from "./attempt.ts";
import { Capacity } from "./capacity.ts";
import { dispatch } from "./dispatch.ts";
import { Router } from "./route.ts";

type Answer = (request: EngineRequest, cancellation: Cancellation) => EngineResponse | Promise<EngineResponse>;

interface ScriptedEngine extends Engine {
  requests: EngineRequest[];
}

let router: Router;
let capacity: Capacity;

beforeEach(() => {
  router = new Router(systemClock);
  capacity = new Capacity({
    clock: systemClock,
    router,
    bounds: () => ({ maxWaiting: 512, maxWaitMs: 2_000 }),
  });
});

function engineThat(answer: Answer, maxConcurrency?: number): ScriptedEngine {
  const requests: EngineRequest[] = [];
  return {
    name: "e",
    requests,
    redact: (text) => text,
    models: async () => [],
    async send(request, cancellation) {
      requests.push(request);
      return await answer(request, cancellation);
    },
    ...(maxConcurrency === undefined ? {} : { maxConcurrency }),
  };
}

const status = (code: number, headers: Record<string, string> = {}): EngineResponse => {
  return { status: code, headers: new Headers(headers), body: bodyOf(new Uint8Array()) };
};

/** Returns a model on these engines. The first engine is tried first, because its weight is a million times greater. */
function modelOn(...engines: Engine[]): Model {
  return {
    id: "m",
    created: 0,
    ownedBy: "",
    capabilities: undefined,
    context: undefined,
    environments: ["dev"],
    price: undefined,
    deployments: engines.map((engine, index) => ({ engine, model: "m", weight: 1_000_000 ** (1 - index) })),
  };
}

function requestWith(more: Record<string, unknown> = {}): DecodedRequest {
  return decodedRequest({ messages: [], ...more });
}

interface SendingOptions {
  accountId?: string;
  recording?: boolean;
  cancellation?: Cancellation;
  request?: DecodedRequest;
  modelNow?: () => Model | undefined;
  fallbackModels?: readonly Model[];
  mayAsk?: Sender["mayAsk"];
}

function send(model: Model, options: SendingOptions = {}): Promise<Dispatched> {
  const deps = { router, capacity, clock: systemClock };
  return Promise.resolve(dispatch(options.request ?? requestWith(), model, deps, senderFor(model, options)));
}

function senderFor(model: Model, options: SendingOptions): Sender {
  const { accountId = "a", recording = false, cancellation = new Cancellation() } = options;
  return {
    requestId: "req_1",
    ...{ priority: "normal", accountId, partyId: accountId },
    memoryAccount: bufferedBytes.visitors,
    recording,
    seal: noSeal,
    cancellation,
    workload: { promptTokens: 1, maxCompletionTokens: undefined, width: 1, prefix: () => undefined },
    modelNow: options.modelNow ?? (() => model),
    fallbackModels: () => options.fallbackModels ?? [],
    waits() {},
    waited: (ms) => void waits.push(ms),
    sending() {
      sent++;
    },
    attempted: ({ engine }, error) => void received.push([engine.name, codeOf(error)]),
    mayAsk: options.mayAsk ?? (() => true),
    tried(step) {
      steps.push(step);
      return null;
    },
  };
}

/** The waits of a test's requests, and the number of requests sent. */
let waits: number[] = [];
let sent = 0;
/** The outcome of each engine that was asked. */
let received: [engine: string, code: string | undefined][] = [];
/** The steps of the request's trail. */
let steps: Tried[] = [];
beforeEach(() => {
  waits = [];
  sent = 0;
  received = [];
  steps = [];
});

function codeOf(error: unknown): string | undefined {
  if (error === undefined) return undefined;
  return error instanceof GatewayError ? error.code : String(error);
}

const inFlight = (engine: Engine) => capacity.figures(engine)[0]?.inFlight;

test("dispatches synchronously: reports an answer in its own call, and tries the next engine on failure", () => {
  const answers: Deferred<EngineResponse>[] = [];
  const engine = (name: string): Engine => ({
    ...engineThat(() => status(200)),
    name,
    send() {
      const answer = new Deferred<EngineResponse>();
      answers.push(answer);
      return answer;
    },
  });
  const model = modelOn(engine("one"), engine("two"));
  const sender = senderFor(model, {});
  let taken: Dispatched | undefined;
  whenSettled(
    dispatch(requestWith(), model, { router, capacity, clock: systemClock }, sender),
    (dispatched) => {
      taken = dispatched;
    },
    () => expect.unreachable(),
  );
  expect(answers.length).toBe(1);
  answers[0]?.reject(new GatewayError("upstream_error", "gone"));
  expect(answers.length).toBe(2);
  const response = status(200);
  answers[1]?.resolve(response);
  expect([taken?.response, taken?.deployment.engine.name]).toEqual([response, "two"]);
});

test("skips a deployment that the request may no longer use and frees its slot", async () => {
  const [left, stays] = [engineThat(() => status(200)), engineThat(() => status(200))];
  const model = modelOn(left, stays);
  const now = { ...model, deployments: model.deployments.filter(({ engine }) => engine === stays) };
  const mayAsk: Sender["mayAsk"] = ({ engine }) => engine === stays;
  const taken = await send(model, { mayAsk, modelNow: () => now });
  expect([taken.deployment.engine, left.requests.length, inFlight(left) ?? 0]).toEqual([stays, 0, 0]);
  taken.done(false);
  const nowhere = { ...model, deployments: [] };
  await expect(send(model, { mayAsk: () => false, modelNow: () => nowhere })).rejects.toMatchObject({
    code: "service_unavailable",
  });
  expect([left.requests.length, stays.requests.length, inFlight(stays)]).toEqual([0, 1, 0]);
});

describe("released slots", () => {
  test("releases a slot once when the answer is done, failed or not", async () => {
    const engine = engineThat(() => status(200));
    for (const failed of [false, true]) {
      const first = await send(modelOn(engine));
      const second = await send(modelOn(engine));
      expect(inFlight(engine)).toBe(2);
      first.firstByte();
      first.done(failed);
      first.done(failed);
      expect(inFlight(engine)).toBe(1);
      second.done(failed);
      expect(inFlight(engine)).toBe(0);
    }
  });

  test.each([400, 401, 404, 413, 429, 500, 503, 504])("releases a slot when the engine answers %d", async (code) => {
    const engine = engineThat(() => status(code));
    await expect(send(modelOn(engine))).rejects.toBeInstanceOf(GatewayError);
    expect(inFlight(engine)).toBe(0);
    expect(engine.requests).toHaveLength(1);
  });

  test("releases a slot when the engine is unreachable, silent, or fails unexpectedly", async () => {
    for (const error of [
      new GatewayError("upstream_error", "unreachable"),
      new GatewayError("upstream_timeout", "late"),
      new Error("a fault of ours"),
    ]) {
      const engine = engineThat(() => Promise.reject(error));
      await expect(send(modelOn(engine))).rejects.toBe(error);
      expect(inFlight(engine)).toBe(0);
    }
  });

  test.each([400, 500, "broken"] as const)(
    "releases slots and fails the request if an observer throws: %s",
    async (how) => {
      const fault = new Error("a fault of ours");
      const answers = {
        later: () => {
          const answer = new Deferred<EngineResponse>();
          queueMicrotask(() => {
            if (how === "broken") answer.reject(new GatewayError("upstream_error", "gone"));
            else answer.resolve(status(how));
          });
          return answer;
        },
        promise: async () => {
          if (how === "broken") throw new GatewayError("upstream_error", "gone");
          return status(how);
        },
      };
      const failing = () => {
        throw fault;
      };
      const ways: Partial<Sender>[] = [{ attempted: failing }];
      if (how === 500 || how === "broken") ways.push({ modelNow: failing });
      for (const answer of Object.values(answers)) {
        for (const way of ways) {
          const engine: Engine = { ...engineThat(() => status(200)), send: answer };
          const model = modelOn(
            engine,
            engineThat(() => status(200)),
          );
          const sender = { ...senderFor(model, {}), ...way };
          const dispatched = dispatch(requestWith(), model, { router, capacity, clock: systemClock }, sender);
          const reported = Promise.race([dispatched, Bun.sleep(500)]);
          await expect(reported).rejects.toBe(fault);
          expect(inFlight(engine)).toBe(0);
        }
      }
    },
  );

  test("releases a slot when the client leaves, waiting or served", async () => {
    const engine = engineThat((_request, cancellation) => {
      const { promise, reject } = Promise.withResolvers<EngineResponse>();
      cancellation.onCancel(() => reject(cancellation.reason));
      return promise;
    }, 1);
    const clients = [new Cancellation(), new Cancellation()];
    const both = clients.map((cancellation) =>
      send(modelOn(engine), { cancellation }).catch((error: unknown) => error),
    );
    expect(capacity.figures(engine)).toEqual([{ model: null, limit: 1, inFlight: 1, waiting: 1 }]);
    clients[1]?.cancel(new Error("the second left"));
    expect(await both[1]).toEqual(new Error("the second left"));
    clients[0]?.cancel(new Error("the first left"));
    expect(await both[0]).toEqual(new Error("the first left"));
    expect(capacity.figures(engine)).toEqual([{ model: null, limit: 1, inFlight: 0, waiting: 0 }]);
    expect(router.engineState(engine) !== "ok").toBe(false);
  });
});

describe("waiting", () => {
  test("reports the wait for a slot, also of a request that leaves the queue and is not sent", async () => {
    const engine = engineThat(() => status(200), 1);
    const first = await send(modelOn(engine));
    expect([waits, sent]).toEqual([[], 1]);
    const leaver = new Cancellation();
    const second = send(modelOn(engine));
    const third = send(modelOn(engine), { cancellation: leaver });
    await Bun.sleep(20);
    expect(engine.requests).toHaveLength(1);
    leaver.cancel(new Error("left"));
    await expect(third).rejects.toThrow("left");
    expect(waits[0]).toBeGreaterThan(15);
    first.done(false);
    (await second).done(false);
    expect(waits[1]).toBeGreaterThan(15);
    expect([waits.length, sent]).toEqual([2, 2]);
  });

  test("does not send a request whose client leaves as it gets its slot, and releases the slot", async () => {
    const engine = engineThat(() => status(200), 1);
    const first = await send(modelOn(engine));
    const cancellation = new Cancellation();
    const second = send(modelOn(engine), { cancellation });
    first.done(false);
    cancellation.cancel(new Error("left"));
    await expect(second).rejects.toThrow("left");
    expect([sent, engine.requests.length, capacity.figures(engine)[0]?.inFlight]).toEqual([1, 1, 0]);
  });

  test("releases the slot of a failed candidate before trying the next one", async () => {
    const seen: (number | undefined)[] = [];
    const bad = engineThat(() => status(500));
    const good = engineThat(() => {
      seen.push(inFlight(bad));
      return status(200);
    });
    const dispatched = await send(modelOn(bad, good));
    expect(dispatched.deployment.engine).toBe(good);
    expect(seen).toEqual([0]);
    dispatched.done(false);
  });

  test("waits for another full candidate after one candidate failed", async () => {
    const bad = engineThat(() => status(500));
    const full = engineThat(() => status(200), 1);
    const first = await send(modelOn(full));
    const second = send(modelOn(bad, full));
    await Bun.sleep(5);
    first.done(false);
    const dispatched = await second;
    expect(dispatched.deployment.engine).toBe(full);
    expect(bad.requests).toHaveLength(1);
    dispatched.done(false);
  });
});

test("tries the next deployment if a server sends a compressed answer unasked", async () => {
  const packed = engineThat(() => status(200, { "content-encoding": "gzip" }));
  const plain = engineThat(() => status(200, { "content-encoding": "identity" }));
  expect((await send(modelOn(packed, plain))).response.status).toBe(200);
  await expect(send(modelOn(packed))).rejects.toMatchObject({
    code: "upstream_error",
    detail: expect.stringContaining("content-encoding gzip"),
  });
});

test("reports the outcome of each attempt, whether another one follows or not", async () => {
  const named = (name: string, answer: Answer) => ({ ...engineThat(answer), name });
  const lost = named("lost", () => Promise.reject(new GatewayError("upstream_error", "unreachable")));
  const [bad, good] = [named("bad", () => status(500)), named("good", () => status(200))];
  (await send(modelOn(lost, bad, good))).done(false);
  expect(received.at(-1)).toEqual(["good", undefined]);
  // The router decides which engines are tried before the good one.
  expect(received.slice(0, -1).every(([, code]) => code === "upstream_error")).toBe(true);
  received = [];
  await expect(send(modelOn(named("strict", () => status(400))))).rejects.toBeInstanceOf(GatewayError);
  await expect(send(modelOn(named("odd", () => Promise.reject(new Error("ours")))))).rejects.toThrow("ours");
  expect(received).toEqual([
    ["strict", "invalid_request"],
    ["odd", "Error: ours"],
  ]);
});

describe("refusals that a retry cannot change", () => {
  const said = (code: number, error: unknown): EngineResponse => ({
    ...status(code),
    body: bodyOf(Buffer.from(JSON.stringify(error))),
  });
  const credit = {
    error: { message: "Your credit balance is too low to access the API.", type: "invalid_request_error" },
  };

  const usageLimit = {
    error: {
      message: "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
      type: "invalid_request_error",
    },
  };

  test.each<[string, number, unknown]>([
    [
      "429 with OpenAI's code",
      429,
      { error: { message: "You exceeded your current quota.", code: "insufficient_quota" } },
    ],
    ["429 with Moonshot's type", 429, { error: { message: "Recharge.", type: "exceeded_current_quota_error" } }],
    ["400 in Anthropic's words", 400, { type: "error", ...credit }],
    ["400 in Anthropic's words for a limit", 400, { type: "error", ...usageLimit }],
    ["400 with Alibaba's code", 400, { error: { message: "Access denied.", code: "Arrearage", type: "Arrearage" } }],
    [
      "429 in xAI's words",
      429,
      {
        code: "Some resource has been exhausted",
        error:
          "Your team c03b3526-bed4-49ed-8bd7-f20ef8830383 has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits or raise your spending limit.",
      },
    ],
    ["400 with OpenAI's code for images", 400, { error: { message: "Limit.", code: "billing_hard_limit_reached" } }],
    ["402", 402, { error: { message: "Insufficient Balance" } }],
  ])("tries the next deployment if the operator's credit is used up, reported as %s", async (_, code, error) => {
    const reason = /account at the model server has no credit or quota left/;
    await expect(send(modelOn(engineThat(() => said(code, error))))).rejects.toMatchObject({
      code: "upstream_error",
      message: expect.stringMatching(reason),
      retryAfterSeconds: undefined,
    });
    const spare = engineThat(() => status(200));
    (
      await send(
        modelOn(
          engineThat(() => said(code, error)),
          spare,
        ),
      )
    ).done(false);
    expect(spare.requests).toHaveLength(1);
  });

  test.each<[string, unknown]>([
    [
      "Google",
      [
        {
          error: {
            ...{ code: 400, message: "API key not valid. Please pass a valid API key.", status: "INVALID_ARGUMENT" },
            details: [{ reason: "API_KEY_INVALID", domain: "googleapis.com" }],
          },
        },
      ],
    ],
    ["Google, for an expired key", { error: { code: 400, message: "API key expired. Please renew the API key." } }],
    [
      "Google, for the gateway's country",
      { error: { message: "User location is not supported for the API use.", status: "FAILED_PRECONDITION" } },
    ],
    [
      "xAI",
      {
        code: "Client specified an invalid argument",
        error: "Incorrect API key provided: na***ys. You can obtain an API key from https://console.x.ai.",
      },
    ],
    ["Groq", { error: { message: "Restricted.", type: "invalid_request_error", code: "organization_restricted" } }],
    ["Anthropic", { error: { message: "This organization has been disabled.", type: "invalid_request_error" } }],
  ])("tries the next deployment if the operator's key is refused with 400 by %s", async (_, error) => {
    const refusing = () => engineThat(() => said(400, error));
    await expect(send(modelOn(refusing()))).rejects.toMatchObject({
      code: "upstream_error",
      message: "The model server refused the gateway's own credentials; its operator has to mend that.",
      attemptCause: "authentication",
    });
    const spare = engineThat(() => status(200));
    (await send(modelOn(refusing(), spare))).done(false);
    expect(spare.requests).toHaveLength(1);
  });

  test.each([
    "Unrecognized request argument supplied: Your credit balance is too low",
    "Invalid value: API key not valid. Please pass a valid API key.",
    "API key not valid. Please pass a valid API key. (tools[0].name)",
    "You have reached your specified API usage limits: Extra inputs are not permitted",
    "Your credit balance is too low: Extra inputs are not permitted",
    "Input should be 'low' or 'high', not 'your credit balance is too low'",
  ])("returns a 400 to the client if the server only quotes the client's words: %s", async (message) => {
    const first = engineThat(() => said(400, { error: { message, type: "invalid_request_error" } }));
    const spare = engineThat(() => status(200));
    const model = modelOn(first, spare);
    for (let count = 0; count < 2; count++) {
      await expect(send(model)).rejects.toMatchObject({ code: "invalid_request", message });
    }
    expect([first.requests.length, spare.requests.length]).toEqual([2, 0]);
  });

  const lacking = { detail: "Not Found" };
  /** A server that supports only chat completions and answers other paths with FastAPI's 404. */
  const chatAlone = () => engineThat(({ operation }) => (operation === "chat" ? status(200) : said(404, lacking)));
  const completion = () => decodedRequest({ prompt: "x" }, "completion");
  const ask = async (model: Model, request = requestWith()) => {
    const dispatched = await send(model, { request });
    dispatched.answers();
    dispatched.done(false);
  };

  test("does not rest the chat of a server that answers 404 for an endpoint it lacks", async () => {
    const [first, second] = [chatAlone(), engineThat(() => status(200))];
    const model = modelOn(first, second);
    await ask(model);
    await ask(model, completion());
    await ask(model);
    expect(first.requests.map(({ operation }) => operation)).toEqual(["chat", "completion", "chat"]);
    await expect(send(modelOn(first), { request: completion() })).rejects.toMatchObject({
      code: "upstream_error",
      message:
        "The model server of `m` answers 404 at /completions: it has no such endpoint, or does not serve the model.",
    });
  });

  test.each([
    ["of a server that never answered", () => chatAlone(), [completion(), requestWith()]],
    [
      "of a proxy before a server",
      () => engineThat(() => ({ ...status(404), body: bodyOf(Buffer.from("404 page not found")) })),
      [requestWith(), requestWith()],
    ],
  ])("rests the deployment after a 404 %s", async (_, make, requests) => {
    const [first, second] = [make(), engineThat(() => status(200))];
    const model = modelOn(first, second);
    for (const request of requests) await ask(model, request);
    expect([first.requests.length, second.requests.length]).toEqual([1, 2]);
  });

  test("returns a 404 for an object that the request names to the client, with its message and param", async () => {
    const message = "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.";
    const error = { message, type: "invalid_request_error", param: "input", code: null };
    const first = engineThat(() => said(404, { error }));
    const spare = engineThat(() => status(200));
    const model = modelOn(first, spare);
    for (let count = 0; count < 2; count++) {
      await expect(send(model)).rejects.toMatchObject({ code: "invalid_request", message, param: "input" });
    }
    expect([first.requests.length, spare.requests.length]).toEqual([2, 0]);
  });

  test("treats a 403 as the client's fault if moderation flagged the input, and else as the server's", async () => {
    const message = 'This model requires moderation. Your input was flagged for "violence".';
    const metadata = { reasons: ["violence"], flagged_input: "x", provider_name: "OpenAI" };
    const first = engineThat(() => said(403, { error: { code: 403, message, metadata } }));
    const spare = engineThat(() => status(200));
    const model = modelOn(first, spare);
    for (let count = 0; count < 2; count++) {
      const refused = { code: "invalid_request", message, engineCode: "content_filter" };
      await expect(send(model)).rejects.toMatchObject(refused);
    }
    expect([first.requests.length, spare.requests.length]).toEqual([2, 0]);
    const locked = engineThat(() => said(403, { error: { code: 403, message: "Key disabled", metadata: {} } }));
    await ask(modelOn(locked, spare));
    expect([locked.requests.length, spare.requests.length]).toEqual([1, 1]);
  });

  test("treats a 424 as the client's fault if it names a param of the request, and else as the server's", async () => {
    const message = "Error retrieving tool list from MCP server: 'docs'. Http status code: 404 (Not Found)";
    const error = { message, type: "external_connector_error", param: "tools", code: "http_error" };
    const first = engineThat(() => said(424, { error }));
    const spare = engineThat(() => status(200));
    const model = modelOn(first, spare);
    for (let count = 0; count < 2; count++) {
      await expect(send(model)).rejects.toMatchObject({ code: "invalid_request", message, param: "tools" });
    }
    expect([first.requests.length, spare.requests.length]).toEqual([2, 0]);
    const failing = engineThat(() =>
      said(424, { error: "Request failed during generation", error_type: "generation" }),
    );
    await ask(modelOn(failing, spare));
    expect([failing.requests.length, spare.requests.length]).toEqual([1, 1]);
  });

  test.each([
    ["no place", "Vector store with id [vs_1a2b] not found.", "vs_1a2b", ""],
    [
      "a file of this gateway",
      "The requested file 'file-0123456789abcdef0123456789abcdef' was not found.",
      "file-0123456789abcdef0123456789abcdef",
      " Model servers do not see files that were uploaded to this gateway: send the data of the file in the request.",
    ],
  ])("treats a 404 that names %s and an object of the request as the client's fault", async (_, message, id, hint) => {
    const first = engineThat(() => said(404, { error: { message, type: "invalid_request_error", param: null } }));
    const spare = engineThat(() => status(200));
    const model = modelOn(first, spare);
    const request = requestWith({ messages: [{ role: "user", content: id }] });
    for (let count = 0; count < 2; count++) {
      const refused = { code: "invalid_request", message: `${message}${hint}` };
      await expect(send(model, { request })).rejects.toMatchObject(refused);
    }
    expect([first.requests.length, spare.requests.length]).toEqual([2, 0]);
  });
});

describe("the attempt log", () => {
  const named = (name: string, answer: Answer, maxConcurrency?: number) => ({
    ...engineThat(answer, maxConcurrency),
    name,
  });
  const said = (code: number, text: string): EngineResponse => ({ ...status(code), body: bodyOf(Buffer.from(text)) });
  const results = () => steps.map(({ deployment, result, status: code }) => [deployment?.engine.name, result, code]);

  test("keeps no attempt log if the first engine takes the request", async () => {
    (await send(modelOn(named("one", () => status(200))))).done(false);
    expect(steps).toEqual([]);
  });

  test("logs each failed engine once, with its answer", async () => {
    const bad = named("bad", () => said(500, '{"error":{"message":"out of memory"}}'));
    const plain = named("plain", () => said(502, "no healthy upstream"));
    const page = named("page", () => said(503, "<html>busy</html>"));
    const lost = named("lost", () =>
      Promise.reject(new GatewayError("upstream_error", "x", { detail: "lost: refused" })),
    );
    const late = named("late", () => Promise.reject(new GatewayError("upstream_timeout", "not within 5 s")));
    for (const engine of [bad, plain, page, lost, late]) await send(modelOn(engine)).catch(() => {});
    expect(results()).toEqual([
      ["bad", "refused", 500],
      ["plain", "refused", 502],
      ["page", "refused", 503],
      ["lost", "unreachable", undefined],
      ["late", "timed_out", undefined],
    ]);
    expect(steps.map((step) => step.said)).toEqual([
      ...["out of memory", "no healthy upstream", undefined, "lost: refused", "not within 5 s"],
    ]);
  });

  test("logs the engine that refused the request, and the engine that was tried when the client left", async () => {
    const strict = named("strict", () => said(400, '{"error":{"message":"no such field"}}'));
    await expect(send(modelOn(strict))).rejects.toMatchObject({ code: "invalid_request" });
    const cancellation = new Cancellation();
    const slow = named(
      "slow",
      () => new Promise((_resolve, reject) => cancellation.onCancel(() => reject(new Error("left")))),
    );
    const sent = send(modelOn(slow), { cancellation }).catch(() => {});
    cancellation.cancel(new Error("left"));
    await sent;
    expect(results()).toEqual([
      ["strict", "refused", 400],
      ["slow", "cancelled", undefined],
    ]);
  });

  test("logs which deployments were skipped and why: resting, removed or without a slot", async () => {
    const bad = named("bad", () => status(500));
    const rests = named("rests", () => status(500));
    await send(modelOn(rests)).catch(() => {});
    steps = [];
    const away = { ...named("away", () => status(200)), accepts: false };
    const model = modelOn(bad, rests, away);
    await send(model).catch(() => {});
    expect(results().slice(0, 3)).toEqual([
      ["bad", "refused", 500],
      ["rests", "resting", undefined],
      ["away", "away", undefined],
    ]);
    steps = [];
    await expect(send(modelOn(away))).rejects.toMatchObject({ code: "service_unavailable" });
    expect(results()).toEqual([["away", "away", undefined]]);

    steps = [];
    capacity = new Capacity({ clock: systemClock, router, bounds: () => ({ maxWaiting: 0, maxWaitMs: 2_000 }) });
    const full = named("full", () => status(200), 1);
    const first = await send(modelOn(full));
    await expect(send(modelOn(full))).rejects.toMatchObject({ refusal: "capacity" });
    first.done(false);
    expect(results()).toEqual([[undefined, "queue_full", undefined]]);
  });
});

test("waits once for the restart of a server that ended before receiving the request", async () => {
  const error = new NotRunningError("service_unavailable", "has just stopped");
  const onDemand = { open: true, demand() {} };
  let ends = 0;
  const engine = {
    ...engineThat(() => {
      if (--ends < 0) return status(200);
      onDemand.open = false;
      setTimeout(() => {
        onDemand.open = true;
        capacity.opened(engine);
      });
      throw error;
    }),
    onDemand,
  };
  ends = 1;
  (await send(modelOn(engine))).done(false);
  expect(engine.requests).toHaveLength(2);
  ends = 2;
  await expect(send(modelOn(engine))).rejects.toBe(error);
  expect([engine.requests.length, inFlight(engine)]).toEqual([4, 0]);
});

test("does not try an engine that was deleted while another one failed", async () => {
  const others = [(failing: Engine) => modelOn(failing), () => undefined];
  for (const modelNow of others) {
    const failing = engineThat(() => status(500));
    const other = { ...engineThat(() => status(200)), name: "other" };
    const model = modelOn(failing, other);
    await expect(send(model, { modelNow: () => modelNow(failing) })).rejects.toMatchObject({ code: "upstream_error" });
    expect([failing.requests.length, other.requests.length]).toEqual([1, 0]);
    (await send(model)).done(false);
    expect(other.requests).toHaveLength(1);
  }
});

describe("an overloaded engine", () => {
  test.each([8, 3])(
    "answers all of a burst at an engine of %d at once, without resting the overloaded engine",
    async (most) => {
      let busy = 0;
      const engine = engineThat(async () => {
        if (busy >= most) return status(429);
        busy++;
        await Bun.sleep(2);
        busy--;
        return status(200);
      });
      const burst = Array.from({ length: 60 }, () =>
        send(modelOn(engine)).then((dispatched) => dispatched.done(false)),
      );
      const outcomes = await Promise.allSettled(burst);
      expect(outcomes.filter(({ status: outcome }) => outcome === "rejected")).toHaveLength(0);
      expect(inFlight(engine)).toBe(0);
      expect(router.engineState(engine) !== "ok").toBe(false);
    },
  );

  test("obeys the retry time that an overloaded engine sends", async () => {
    const engine = engineThat(() => (engine.requests.length > 1 ? status(429, { "retry-after": "7" }) : status(200)));
    const first = await send(modelOn(engine));
    await expect(send(modelOn(engine))).rejects.toMatchObject({ code: "service_unavailable", retryAfterSeconds: 7 });
    expect(engine.requests).toHaveLength(2);
    first.done(false);
  });

  test("retries an overloaded engine once one of its answers has ended", async () => {
    const engine = engineThat(() => (engine.requests.length > 1 ? status(503) : status(200)));
    const first = await send(modelOn(engine));
    const second = send(modelOn(engine)).catch((error: unknown) => error);
    await Bun.sleep(10);
    expect(engine.requests).toHaveLength(2);
    first.firstByte();
    first.done(false);
    expect(await second).toMatchObject({ code: "service_unavailable" });
    expect(engine.requests).toHaveLength(3);
  });

  test("sends one waiting request to an overloaded engine for each answer that ends", async () => {
    const engine = engineThat(() => (engine.requests.length > 2 ? status(503) : status(200)));
    const [first, second] = [await send(modelOn(engine)), await send(modelOn(engine))];
    const waiting = [1, 2].map(() => send(modelOn(engine)).catch((error: unknown) => error));
    await Bun.sleep(10);
    expect(engine.requests).toHaveLength(4);
    first.firstByte();
    first.done(false);
    await Bun.sleep(10);
    expect(engine.requests).toHaveLength(5);
    second.firstByte();
    second.done(false);
    for (const error of await Promise.all(waiting)) expect(error).toMatchObject({ code: "service_unavailable" });
  });

  test("does not retry an overloaded engine after its last answer ended before its first byte", async () => {
    const engine = engineThat(() => (engine.requests.length > 1 ? status(503) : status(200)));
    const first = await send(modelOn(engine));
    await expect(send(modelOn(engine))).rejects.toMatchObject({ code: "service_unavailable" });
    expect(engine.requests).toHaveLength(2);
    first.done(false);
  });

  test.each([429, 503, 529])("sends no more than the retry budget to engines that always answer %d", async (code) => {
    const engines = [1, 2, 3].map((n) => ({
      ...engineThat(async () => {
        await Bun.sleep(1);
        return status(code);
      }),
      name: `e${n}`,
    }));
    const model = modelOn(...engines);
    const all = Array.from({ length: 100 }, () => send(model).catch((error: unknown) => error));
    for (const error of await Promise.all(all)) expect(error).toMatchObject({ code: "service_unavailable" });
    const asked = engines.reduce((sum, { requests }) => sum + requests.length, 0);
    expect(asked).toBeGreaterThan(100);
    expect(asked).toBeLessThanOrEqual(100 + 10 + 20);
    expect(engines.map(inFlight)).toEqual([0, 0, 0]);
  });
});

describe("the effect of a failure on an engine", () => {
  const limitOf = (engine: Engine) => capacity.figures(engine)[0]?.limit;
  const failure = (code: GatewayError["code"]) => new GatewayError(code, "failed");

  test.each([
    ["upstream_timeout", 32],
    ["service_unavailable", 32],
    ["upstream_error", 64],
  ] as const)("lowers the concurrency by the error code of a failed answer: %s, %d", async (code, left) => {
    const engine = engineThat(() => status(200));
    const [first, second] = [await send(modelOn(engine)), await send(modelOn(engine))];
    await expect(Promise.resolve(first.another(failure(code), false))).rejects.toMatchObject({ code });
    expect(limitOf(engine)).toBe(left);
    second.done(false);
  });

  test.each([
    ["upstream_timeout", 32, "ok"],
    ["upstream_error", 64, "resting"],
  ] as const)(
    "handles a request that fails with %s: %d slots remain, and the engine is %s",
    async (code, left, state) => {
      const engine = engineThat(() => (engine.requests.length > 1 ? Promise.reject(failure(code)) : status(200)));
      const model = modelOn(engine);
      const first = await send(model);
      await expect(send(model)).rejects.toMatchObject({ code });
      expect([limitOf(engine), router.engineState(engine)]).toEqual([left, state]);
      expect(model.deployments.map((deployment) => router.resting(deployment))).toEqual([true]);
      first.done(false);
    },
  );
});

describe("the body sent to an engine", () => {
  test("does not ask an engine to store what the gateway stores", async () => {
    const engine = engineThat(() => status(200));
    const request = requestWith({ store: true, metadata: { a: "b" } });
    (await send(modelOn(engine), { request, recording: true })).done(false);
    (await send(modelOn(engine), { request })).done(false);
    expect(
      engine.requests.map(({ body }) => JSON.parse(typeof body === "string" ? body : body.solid.text) as unknown),
    ).toEqual([
      { model: "m", messages: [] },
      { model: "m", messages: [], store: true, metadata: { a: "b" } },
    ]);
  });
});

describe("fallbacks", () => {
  const named = (id: string, fallbacks: readonly string[] | undefined, ...engines: Engine[]): Model => ({
    ...{ ...modelOn(...engines), id },
    ...(fallbacks ? { fallbacks } : {}),
  });
  const noting = (asked: string[], name: string, code: () => number) => {
    const answer = () => {
      asked.push(name);
      return status(code());
    };
    return { ...engineThat(answer), name };
  };
  const taken = async (dispatched: Promise<Dispatched>) => {
    const { model, done } = await dispatched;
    return { id: model.id, done };
  };

  test("tries fallbacks in order after all deployments failed, and reports the requested model's error", async () => {
    const asked: string[] = [];
    const failing = (name: string, code: number) => noting(asked, name, () => code);
    const [a, b, c, d] = [failing("a", 500), failing("b", 502), failing("c", 503), failing("d", 504)];
    const model = named("m", ["n", "o"], a, b);
    const fallbackModels = [named("n", undefined, c), named("o", undefined, d)];
    await expect(send(model, { fallbackModels })).rejects.toMatchObject({ code: "upstream_error" });
    expect(asked).toEqual(["a", "b", "c", "d"]);
  });

  test("tries fallbacks first while all deployments rest, and the deployments if they fail", async () => {
    const asked: string[] = [];
    let code = 200;
    const broken = noting(asked, "broken", () => 500);
    const other = noting(asked, "other", () => code);
    const model = named("m", ["n"], broken);
    const fallbackModels = [named("n", undefined, other)];
    const first = await taken(send(model, { fallbackModels }));
    const second = await taken(send(model, { fallbackModels }));
    expect([first.id, second.id, asked]).toEqual(["n", "n", ["broken", "other", "other"]]);
    code = 500;
    asked.length = 0;
    await expect(send(model, { fallbackModels })).rejects.toMatchObject({ code: "upstream_error" });
    expect(asked).toEqual(["other", "broken"]);
  });

  test("tries no fallback if the request is at fault or the client has left", async () => {
    const refusing = engineThat(() => status(400));
    const other = engineThat(() => status(200));
    const fallbackModels = [named("n", undefined, other)];
    await expect(send(named("m", ["n"], refusing), { fallbackModels })).rejects.toMatchObject({
      code: "invalid_request",
    });
    const cancellation = new Cancellation();
    const leaving = engineThat(() => {
      cancellation.cancel(new Error("left"));
      throw new GatewayError("upstream_error", "broke off");
    });
    await expect(send(named("m", ["n"], leaving), { fallbackModels, cancellation })).rejects.toThrow("broke off");
    expect(other.requests).toHaveLength(0);
  });

  test("tries fallbacks within the retry budget if many requests fail at once", async () => {
    const failing = { ...engineThat(() => status(500)), name: "failing" };
    const other = { ...engineThat(() => status(200)), name: "other" };
    const fallbackModels = [named("n", undefined, other)];
    const model = named("m", ["n"], failing);
    await Promise.allSettled(Array.from({ length: 60 }, () => send(model, { fallbackModels })));
    expect([failing.requests.length, other.requests.length]).toEqual([60, 10 + 12]);
    expect(steps.filter(({ result }) => result === "not_retried")).toHaveLength(60 - 22);
  });

  test("retries the requests of a crashed engine within the retry budget", async () => {
    const bad = { ...engineThat(() => status(500)), name: "bad" };
    const good = { ...engineThat(() => status(200)), name: "good" };
    const model = modelOn(bad, good);
    const outcomes = await Promise.allSettled(Array.from({ length: 60 }, () => send(model)));
    const answered = outcomes.filter(({ status: outcome }) => outcome === "fulfilled").length;
    expect(bad.requests.length).toBeGreaterThan(30);
    // Answered are the requests that went to the good engine first, ten retries, and a fifth of all requests as
    // retries.
    expect(answered).toBe(60 - bad.requests.length + 10 + 12);
  });
});

describe("a refusal of a member that only the gateway wrote", () => {
  const refusal = '{"error":{"message":"metadata: Extra inputs are not permitted"}}';
  const request = () => requestWith({ user: "ann", messages: [{ role: "user", content: "Hi" }] });
  const refusing = (answer: Answer = () => status(200)): ScriptedEngine => ({
    ...engineThat((sent, cancellation) => {
      if (!String(sent.body).includes("metadata")) return answer(sent, cancellation);
      return { ...status(400), body: bodyOf(Buffer.from(refusal)) };
    }, 1),
    formats: { message: "whole" },
  });

  test("asks the same engine in the same slot, while another request waits for it", async () => {
    const engine = refusing();
    const model = modelOn(engine);
    const first = send(model, { request: request() });
    const second = send(model, { request: request() });
    (await first).answers();
    expect(engine.requests.map(({ body }) => String(body).includes("metadata"))).toEqual([true, false]);
    (await first).done(false);
    (await second).done(false);
    expect(engine.requests.map(({ body }) => String(body).includes("metadata"))).toEqual([true, false, false]);
    expect(inFlight(engine)).toBe(0);
    expect(steps.map(({ result }) => result)).toEqual(["refused"]);
  });

  test("does not ask an engine again that the request may no longer reach", async () => {
    const engine = refusing();
    let times = 0;
    const sending = send(modelOn(engine), { request: request(), mayAsk: () => times++ === 0 });
    expect(await sending.catch(codeOf)).toBe("invalid_request");
    expect(engine.requests).toHaveLength(1);
    expect(inFlight(engine)).toBe(0);
  });

  test("does not ask again for a client that has left", async () => {
    const cancellation = new Cancellation();
    const engine = refusing();
    const sending = send(modelOn(engine), { request: request(), cancellation });
    cancellation.cancel(new GatewayError("service_unavailable", "left"));
    expect(await sending.catch(codeOf)).toBeDefined();
    expect(engine.requests).toHaveLength(1);
    expect(inFlight(engine)).toBe(0);
  });

  test("asks the next deployment if the repeated request fails", async () => {
    const failing = refusing(() => status(500));
    const other = { ...refusing(), name: "other" };
    const model = modelOn(failing, other);
    const dispatched = await send(model, { request: request() });
    expect(dispatched.deployment.engine.name).toBe("other");
    expect([failing.requests.length, other.requests.length]).toEqual([2, 2]);
    expect(steps.map(({ result }) => result)).toEqual(["refused", "refused", "refused"]);
    dispatched.done(false);
  });
});
