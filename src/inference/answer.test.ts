// Reading a whole answer: the engine's own bytes where nothing must change, refused where it is none.
import { describe, expect, test } from "bun:test";
import { type BodySource, bodyOf } from "../domain/body-source.ts";
import { Cancellation } from "../domain/cancellation.ts";
import { GatewayError } from "../domain/errors.ts";
import { scanObject } from "../domain/json-text.ts";
import { type Answer, readAnswer } from "./answer.ts";
import type { Dispatched } from "./attempt.ts";
import type { DecodedRequest } from "./decoded-request.ts";

const completion = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1_800_000_000,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Grüße 😀" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
};
const names = { id: "chatcmpl-own", created: 1, ownId: false };

function requestOf(model = "m"): DecodedRequest {
  const body = { model, messages: [{ role: "user", content: "Hello" }] };
  const text = JSON.stringify(body);
  const bytes = Buffer.from(text);
  return { operation: "chat", bytes, text, members: scanObject(text), body, model, stream: false, width: 1 };
}

function dispatchedWith(body: BodySource, model = "m"): Dispatched {
  const deployment = { engine: { redact: (text: string) => text } } as unknown as Dispatched["deployment"];
  return {
    response: { status: 200, headers: new Headers(), body },
    deployment,
    model: { id: model } as Dispatched["model"],
    firstByte() {},
    done() {},
  };
}

function read(answer: unknown, { model = "m", ownId = false } = {}): Answer | Promise<Answer> {
  const bytes = Buffer.from(typeof answer === "string" ? answer : JSON.stringify(answer));
  return readAnswer(requestOf(model), dispatchedWith(bodyOf(bytes), model), { ...names, ownId }, new Cancellation());
}

/** Gives its pieces one after the other, later. */
function slowBody(pieces: readonly Uint8Array[], end: "end" | "fail" | "never"): BodySource & { cancelled: boolean } {
  return {
    cancelled: false,
    flow(sink) {
      queueMicrotask(() => {
        for (const piece of pieces) sink.data(piece);
        if (end === "end") sink.end();
        if (end === "fail") sink.fail(new Error("reset"));
      });
    },
    pause() {},
    resume() {},
    cancel() {
      this.cancelled = true;
    },
  };
}

test("an answer that is here and needs no change is given at once, as the engine's own bytes", () => {
  const bytes = Buffer.from(JSON.stringify(completion, null, 2));
  const answer = readAnswer(requestOf(), dispatchedWith(bodyOf(bytes)), names, new Cancellation());
  if (answer instanceof Promise) throw new Error("It was here.");
  expect(answer.body).toBe(bytes);
  expect(answer.text).toBe(bytes.toString());
  expect(answer.usage).toEqual({ promptTokens: 3, completionTokens: 4, estimated: false });
});

test("an answer in pieces is put together, and fails where it breaks off", async () => {
  const bytes = Buffer.from(JSON.stringify(completion));
  for (const cuts of [[], [1], [5, 90], [bytes.length]]) {
    const pieces = [0, ...cuts].map((from, i) => bytes.subarray(from, cuts[i]));
    const answer = await readAnswer(requestOf(), dispatchedWith(slowBody(pieces, "end")), names, new Cancellation());
    expect(answer.text).toBe(bytes.toString());
  }
  const broken = readAnswer(requestOf(), dispatchedWith(slowBody([bytes], "fail")), names, new Cancellation());
  expect(await Promise.resolve(broken).catch((error) => error)).toMatchObject({
    code: "upstream_error",
    message: "The model server broke off in the middle of the answer.",
  });
});

test("cancelled in the middle or before, the engine is told to stop, and the reason is what is thrown", async () => {
  const cancellation = new Cancellation();
  const body = slowBody([], "never");
  const answer = readAnswer(requestOf(), dispatchedWith(body), names, cancellation);
  const reason = new Error("left");
  cancellation.cancel(reason);
  expect(await Promise.resolve(answer).catch((error) => error)).toBe(reason);
  expect(body.cancelled).toBe(true);
  const unread = slowBody([], "never");
  expect(() => readAnswer(requestOf(), dispatchedWith(unread), names, cancellation)).toThrow(reason);
  expect(unread.cancelled).toBe(true);
});

describe("what must change is changed, and nothing else", () => {
  test.each(["other", 'a "quoted" one', "größer", "a\\n", ""])("the model %j has its public id", async (model) => {
    for (const indent of [0, 2]) {
      const text = JSON.stringify(completion, null, indent);
      const answer = await read(text, { model });
      expect(answer.text).toBe(text.replace('"m"', () => JSON.stringify(model)));
      expect(Buffer.from(answer.body as Uint8Array).toString()).toBe(answer.text);
      expect(answer.usage.promptTokens).toBe(3);
    }
  });

  test.each([
    ["no id", { ...completion, id: undefined }, { id: "chatcmpl-own" }],
    ["an id that is a number", { ...completion, id: 7 }, { id: "chatcmpl-own" }],
    ["no time", { ...completion, created: null }, { created: 1 }],
    ["another object", { ...completion, object: "x" }, { object: "chat.completion" }],
    ["no model", { ...completion, model: undefined }, { model: "m" }],
    ["no sum", { ...completion, usage: { prompt_tokens: 3, completion_tokens: 4 } }, { usage: completion.usage }],
    ["an error that is null", { ...completion, error: null }, {}],
    ["a name with an escape", `{"\\u0069d":"x",${JSON.stringify(completion).slice(19)}`, { id: "x" }],
  ] as const)("%s", async (_name, given, changed) => {
    const expected = typeof given === "string" ? JSON.parse(given) : given;
    expect(JSON.parse((await read(given)).text)).toEqual(JSON.parse(JSON.stringify({ ...expected, ...changed })));
  });

  test("an answer that is kept has an id of ours", async () => {
    expect(JSON.parse((await read(completion, { ownId: true })).text).id).toBe("chatcmpl-own");
  });

  test("usage that was not reported, or in no whole numbers, is estimated", async () => {
    for (const usage of [
      undefined,
      null,
      "x",
      {},
      { prompt_tokens: 1.5 },
      { prompt_tokens: -1 },
      { prompt_tokens: "3" },
    ]) {
      const answer = await read({ ...completion, usage });
      expect(answer.usage.estimated).toBe(true);
      expect(JSON.parse(answer.text).usage).toMatchObject({ estimated: true });
    }
  });
});

test.each([
  ["nothing", ""],
  ["half of it", JSON.stringify(completion).slice(0, -1)],
  ["more than it", `${JSON.stringify(completion)}{}`],
  ["a control character in a text", JSON.stringify(completion).replace("Gr", "G\u0001r")],
  ["a comma too many", JSON.stringify(completion).replace("}]", "},]")],
  ["an error", { ...completion, error: { message: "out of memory" } }],
  ["an error that is false", { ...completion, error: false }],
  ["no choices", { ...completion, choices: [] }],
  ["choices that are no list", { ...completion, choices: {} }],
])("%s is refused", async (_name, answer) => {
  const error = await (async () => read(answer))().catch((thrown) => thrown);
  expect(error).toBeInstanceOf(GatewayError);
  expect(error).toMatchObject({ code: "upstream_error" });
});

test("a byte-order mark is not passed on", async () => {
  const text = JSON.stringify(completion);
  expect((await read(`\ufeff${text}`)).text).toBe(text);
});
