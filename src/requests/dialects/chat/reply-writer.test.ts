// Tests that OpenAI's SDK accepts streams and whole answers, and reads the same from both.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import OpenAI from "openai";
import { withinMs } from "../../../../tests/support/long.ts";
import { CollectedReply } from "../conversation/collected-reply.ts";
import type { ReplyEnd, ReplySink } from "../conversation/reply.ts";
import { chatFormat } from "./format.ts";

type Json = Record<string, unknown>;
type Step = (sink: ReplySink) => void;

const seal = { seal: (text: string) => text, open: (text: string) => text };
const used = { promptTokens: 9, completionTokens: 4, cachedTokens: 3, reasoningTokens: 2 };

function writer(request: Json) {
  return chatFormat.writer({ id: "chatcmpl-1", model: "public", created: 5, promptTokens: 9, request, seal });
}

function wholeOf(steps: readonly Step[], request: Json = {}): Json {
  const whole = writer(request);
  for (const step of steps) step(whole);
  return whole.whole(used);
}

function streamOf(steps: readonly Step[], request: Json = {}): string {
  const stream = writer({ ...request, stream: true });
  let sent = "";
  for (const step of steps) {
    step(stream);
    sent += stream.take();
  }
  return sent + stream.ending(used);
}

function eventsOf(stream: string): Json[] {
  const events = stream.split("\n\n").filter((event) => event !== "" && event !== "data: [DONE]");
  return events.map((event) => JSON.parse(event.slice("data: ".length)));
}

/** Returns the answer that OpenAI's SDK reads from a stream. */
async function finalOf(stream: string): Promise<Json> {
  const fetch = async () => new Response(stream, { headers: { "content-type": "text/event-stream" } });
  const client = new OpenAI({ apiKey: "k", baseURL: "http://localhost:1/v1", fetch, maxRetries: 0 });
  const messages = [{ role: "user" as const, content: "x" }];
  const reading = client.chat.completions.stream({ model: "m", messages, stream_options: { include_usage: true } });
  return JSON.parse(JSON.stringify(await reading.finalChatCompletion()));
}

const say =
  (text: string): Step =>
  (sink) =>
    sink.text(text);
const think =
  (text: string): Step =>
  (sink) =>
    sink.reasoning(text, false);
const end =
  (reason: ReplyEnd["reason"]): Step =>
  (sink) =>
    sink.end({ reason });
const call =
  (index: number, ...given: string[]): Step =>
  (sink) => {
    sink.call(index, { callId: `call_${index}`, kind: "function", name: `f${index}` });
    for (const text of given) sink.arguments(index, text);
  };

test("streams a text in OpenAI's chunks, with usage last for clients that asked for it", () => {
  const steps = [say("Hel"), say('lo "you"'), end("stop")];
  const head = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 5, model: "public" };
  const chunk = (delta: Json, finish_reason: unknown = null) => ({
    ...head,
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
  });
  const expected = [
    chunk({ role: "assistant", content: "" }),
    chunk({ content: "Hel" }),
    chunk({ content: 'lo "you"' }),
    chunk({}, "stop"),
  ];
  expect(eventsOf(streamOf(steps))).toEqual(expected);
  expect(streamOf(steps)).toEndWith("\n\ndata: [DONE]\n\n");
  const usage = {
    ...{ prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 },
    prompt_tokens_details: { cached_tokens: 3 },
    completion_tokens_details: { reasoning_tokens: 2 },
  };
  expect(eventsOf(streamOf(steps, { stream_options: { include_usage: true } }))).toEqual([
    ...expected.map((one) => ({ ...one, usage: null })),
    { ...head, choices: [], usage },
  ]);
});

test("gives OpenAI's SDK the same answer streamed and whole", async () => {
  const entry = { token: "a", logprob: -0.1, bytes: [97], top_logprobs: [] };
  const custom: Step = (sink) => {
    sink.call(9, { callId: "c", kind: "custom", name: "patch" });
    sink.arguments(9, "+a");
  };
  const cases: Step[][] = [
    [say("Hello"), end("stop")],
    [end("stop")],
    [say("cut"), end("length")],
    [end("filter")],
    [end("refusal")],
    [(sink) => sink.refusal("I "), (sink) => sink.refusal("will not."), end("refusal")],
    [say("I look."), call(2, '{"a"', ":1}"), call(5), custom, end("calls")],
    [call(0, "{}"), end("calls")],
    [(sink) => sink.text("a", [entry]), (sink) => sink.text("b", [entry]), end("stop")],
  ];
  for (const steps of cases) {
    const final = await finalOf(streamOf(steps, { stream_options: { include_usage: true } }));
    const { choices, ...whole } = wholeOf(steps) as { choices: { message: Json }[] };
    // The SDK adds members with parsed values, which are removed here.
    const parsed = (value: unknown) =>
      JSON.parse(JSON.stringify(value, (name, one) => (name.startsWith("parsed") ? undefined : one)));
    expect(parsed(final)).toEqual({ ...whole, choices });
  }
});

test("writes finish reasons in OpenAI's words", () => {
  const reasons: ReplyEnd["reason"][] = [
    "stop",
    "sequence",
    "calls",
    "length",
    "context",
    "filter",
    "refusal",
    "pause",
  ];
  const finish = reasons.map((reason) => (wholeOf([end(reason)])["choices"] as Json[])[0]?.["finish_reason"]);
  expect(finish).toEqual([
    "stop",
    "stop",
    "tool_calls",
    "length",
    "length",
    "content_filter",
    "content_filter",
    "stop",
  ]);
});

test("writes legacy function calls for a client of `functions`", async () => {
  const request = { functions: [{ name: "f0" }] };
  const message = {
    role: "assistant",
    content: null,
    refusal: null,
    function_call: { name: "f0", arguments: '{"a":1}' },
  };
  const steps = [call(0, '{"a"', ":1}"), end("calls")];
  expect(wholeOf(steps, request)).toMatchObject({ choices: [{ message, finish_reason: "function_call" }] });
  expect(await finalOf(streamOf(steps, request))).toMatchObject({
    choices: [{ message, finish_reason: "function_call" }],
  });
});

test("ends a stream with an error in the gateway's form, after the text so far", () => {
  const stream = writer({ stream: true });
  stream.text("a");
  const [, text, fault] = eventsOf(stream.failure({ status: 502, code: "upstream_error", message: "It broke." }));
  expect(text).toMatchObject({ choices: [{ delta: { content: "a" } }] });
  expect(fault).toEqual({ error: { message: "It broke.", type: "api_error", code: "upstream_error" } });
});

describe("thoughts", () => {
  const signed: Step = (sink) => sink.proof({ kind: "signature", data: "sig" });
  const redacted: Step = (sink) => sink.proof({ kind: "redacted", data: "x" });
  const steps = [think("H"), think("m."), signed, redacted, say("Yes"), end("stop")];

  test("writes reasoning with proofs to `reasoning_details`, so that clients can send them back", () => {
    const format = "anthropic-claude-v1";
    const details = [
      { type: "reasoning.text", text: "Hm.", signature: "sig", format, index: 0 },
      { type: "reasoning.encrypted", data: "x", format, index: 1 },
    ];
    const message = { content: "Yes", reasoning_content: "Hm.", reasoning_details: details };
    const whole = wholeOf(steps);
    expect(whole).toMatchObject({ choices: [{ message }] });
    const streamed = eventsOf(streamOf(steps)).flatMap(
      ({ choices }) => (choices as { delta: Json }[])[0]?.delta["reasoning_details"] ?? [],
    );
    expect(streamed).toEqual(details);
    const { turns } = chatFormat.readRequest({ messages: [(whole["choices"] as Json[])[0]?.["message"]] }, seal);
    expect(turns[0]?.parts).toEqual([
      { type: "reasoning", text: "Hm.", isSummary: false, proof: { kind: "signature", data: "sig" } },
      { type: "reasoning", text: "", isSummary: false, proof: { kind: "redacted", data: "x" } },
      { type: "text", text: "Yes" },
    ]);
  });

  test("writes reasoning after text as a new block with its own proof", () => {
    const two = [think("One."), say("So."), think("Two."), signed, end("stop")];
    const streamed = eventsOf(streamOf(two)).flatMap(
      ({ choices }) => (choices as { delta: Json }[])[0]?.delta["reasoning_details"] ?? [],
    );
    expect(streamed).toMatchObject([{ text: "Two.", signature: "sig" }]);
  });

  test("writes no details without a proof, and several reasoning blocks as paragraphs in both forms", () => {
    const plain: Step[] = [think("One."), (sink) => sink.block(), think("Two."), say("Yes"), end("stop")];
    const deltas = eventsOf(streamOf(plain)).map(({ choices }) => (choices as { delta: Json }[])[0]?.delta ?? {});
    expect(deltas.map((delta) => delta["reasoning_content"] ?? "").join("")).toBe("One.\n\nTwo.");
    expect(deltas.some((delta) => "reasoning_details" in delta)).toBe(false);
    expect(wholeOf(plain)).toMatchObject({ choices: [{ message: { reasoning_content: "One.\n\nTwo." } }] });
  });
});

/** Answers that the format can express: one thought, then text, then parallel calls. */
const answer = fc.record({
  thought: fc.array(fc.string({ minLength: 1 })),
  proof: fc.option(fc.constantFrom("signature" as const, "encrypted" as const)),
  texts: fc.array(fc.string({ unit: "binary", minLength: 1 })),
  calls: fc.array(fc.array(fc.string(), { maxLength: 4 }), { maxLength: 3 }),
  reason: fc.constantFrom("stop" as const, "length" as const, "filter" as const),
});

test("reads streamed and whole answers of the writer as they were written", () => {
  fc.assert(
    fc.property(answer, fc.infiniteStream(fc.nat(9)), ({ thought, proof, texts, calls, reason }, order) => {
      const steps: Step[] = [...thought.map(think)];
      if (proof !== null && thought.length > 0) steps.push((sink) => sink.proof({ kind: proof, data: "p" }));
      steps.push(...texts.map(say));
      for (const [index] of calls.entries()) steps.push(call(index));
      // The arguments of several calls are interleaved.
      const left = calls.map((given, index) =>
        [...given, "{}"].map(
          (text): Step =>
            (sink) =>
              sink.arguments(index, text),
        ),
      );
      while (left.some((one) => one.length > 0)) {
        const step = left[(order.next().value ?? 0) % left.length]?.shift();
        if (step) steps.push(step);
      }
      steps.push(end(reason === "stop" && calls.length > 0 ? "calls" : reason));
      const direct = new CollectedReply();
      for (const step of steps) step(direct);

      const streamed = new CollectedReply();
      const reader = chatFormat.reader(new Map());
      for (const event of eventsOf(streamOf(steps))) reader.event(event, streamed);
      const read = new CollectedReply();
      chatFormat.reader(new Map()).whole(wholeOf(steps), read);
      for (const one of [streamed, read]) {
        expect(one.parts).toEqual(direct.parts);
        expect(one.ended).toEqual(direct.ended);
      }
    }),
  );
});

test("writes a hundred thousand pieces in linear time", () => {
  const stream = writer({ stream: true });
  const began = performance.now();
  let length = 0;
  for (let count = 0; count < 100_000; count++) {
    stream.text(" token");
    if (count % 100 === 0) length += stream.take().length;
  }
  length += stream.take().length;
  expect(length).toBeGreaterThan(100_000 * 100);
  expect(performance.now() - began).toBeLessThan(withinMs(2_000));
});
