// Tests that OpenAI's client reads from a stream the same response that the writer returns as a whole.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import OpenAI from "openai";
import { withinMs } from "../../../../tests/support/long.ts";
import type { Seal } from "../../../domain/seal.ts";
import type { ReplyCall, ReplyEnd, ReplyHead, ReplySink, ReplyUsage } from "../conversation/reply.ts";
import { ResponseWriter } from "./reply-writer.ts";

type Json = Record<string, unknown>;
type ReplyStep = (sink: ReplySink) => void;

const seal: Seal = { seal: (text) => `own.${text}`, open: () => undefined };
const counted: ReplyUsage = { promptTokens: 12, cachedTokens: 4, completionTokens: 7, reasoningTokens: 2 };

function writerOf(request: Json): ResponseWriter {
  const head: ReplyHead = { id: "resp_1", model: "tiny", created: 7, promptTokens: 10, request, seal };
  return new ResponseWriter(head);
}

/** Returns the stream of an answer; the output is taken after each piece. */
function streamed(steps: readonly ReplyStep[], request: Json = {}): string {
  const writer = writerOf({ ...request, stream: true });
  const events = steps.map((tell) => {
    tell(writer);
    return writer.take();
  });
  return events.join("") + writer.ending(counted);
}

function whole(steps: readonly ReplyStep[], request: Json = {}): Json {
  const writer = writerOf(request);
  for (const tell of steps) tell(writer);
  return writer.whole(counted);
}

function dataOf(stream: string): Json[] {
  const events = stream.split("\n\n");
  expect(events.pop()).toBe("");
  return events.map((event, number) => {
    const [name, data, ...rest] = event.split("\n");
    expect(rest).toEqual([]);
    const parsed = JSON.parse(String(data).replace(/^data: /, "")) as Json;
    expect(name).toBe(`event: ${String(parsed["type"])}`);
    expect(parsed["sequence_number"]).toBe(number);
    return parsed;
  });
}

/** Returns a short word for each event after the first two, to compare their sequence. */
function sequenceOf(stream: string): string[] {
  return dataOf(stream)
    .slice(2)
    .map((event) => {
      const type = String(event["type"]).replace("response.", "");
      const item = event["item"] as Json | undefined;
      const text = event["delta"] ?? event["text"] ?? event["arguments"] ?? event["input"] ?? event["refusal"];
      const place = event["output_index"] ?? "";
      return [type, place, item?.["type"] ?? text ?? ""].filter((word) => word !== "").join(" ");
    });
}

/** Returns the response that OpenAI's client reads from the stream. */
async function understood(stream: string): Promise<Json> {
  const fetch = async () => new Response(stream, { headers: { "content-type": "text/event-stream" } });
  const client = new OpenAI({ apiKey: "k", baseURL: "http://localhost:1/v1", fetch, maxRetries: 0 });
  const reading = client.responses.stream({ model: "m", input: "x" });
  const response: Json = JSON.parse(JSON.stringify(await reading.finalResponse()));
  const { output_text: _text, output_parsed: _parsed, ...members } = response;
  return { ...members, output: outputOf(response).map(unparsed) };
}

/** Returns an item without the members that OpenAI's client adds. */
function unparsed({ parsed_arguments: _arguments, ...item }: Json): Json {
  const { content } = item;
  if (!Array.isArray(content)) return item;
  return { ...item, content: content.map(({ parsed: _parsed, ...part }: Json) => part) };
}

const text =
  (said: string): ReplyStep =>
  (sink) =>
    sink.text(said);
const refuse =
  (said: string): ReplyStep =>
  (sink) =>
    sink.refusal(said);
const think =
  (thought: string, isSummary = false): ReplyStep =>
  (sink) =>
    sink.reasoning(thought, isSummary);
const call =
  (index: number, more: Partial<ReplyCall> = {}): ReplyStep =>
  (sink) =>
    sink.call(index, { callId: `call_${index}`, kind: "function", name: "look", ...more });
const give =
  (index: number, piece: string): ReplyStep =>
  (sink) =>
    sink.arguments(index, piece);
const end =
  (reason: ReplyEnd["reason"]): ReplyStep =>
  (sink) =>
    sink.end({ reason });
const block: ReplyStep = (sink) => sink.block();

function outputOf(response: Json): Json[] {
  return response["output"] as Json[];
}

describe("a stream", () => {
  test("writes the events of the vendor's documentation for a text, in their order", () => {
    expect(sequenceOf(streamed([text("Hel"), text("lo"), end("stop")]))).toEqual([
      "output_item.added 0 message",
      "content_part.added 0",
      "output_text.delta 0 Hel",
      "output_text.delta 0 lo",
      "output_text.done 0 Hello",
      "content_part.done 0",
      "output_item.done 0 message",
      "completed",
    ]);
  });

  test("begins a stream before any text, with a response in progress", () => {
    const writer = writerOf({ stream: true });
    const [created, inProgress, ...rest] = dataOf(writer.take());
    expect(rest).toEqual([]);
    expect(created).toMatchObject({ type: "response.created", response: { id: "resp_1", status: "in_progress" } });
    expect(inProgress).toMatchObject({ type: "response.in_progress", response: { output: [], usage: null } });
    expect(writer.take()).toBe("");
  });

  test("ends reasoning and text before the next item, and parallel calls at the end", () => {
    const steps = [
      think("Hm"),
      text("I look."),
      call(0),
      call(1, { kind: "custom", name: "patch" }),
      give(1, "***"),
      give(0, '{"a":1}'),
      end("calls"),
    ];
    expect(sequenceOf(streamed(steps))).toEqual([
      "output_item.added 0 reasoning",
      "content_part.added 0",
      "reasoning_text.delta 0 Hm",
      "reasoning_text.done 0 Hm",
      "content_part.done 0",
      "output_item.done 0 reasoning",
      "output_item.added 1 message",
      "content_part.added 1",
      "output_text.delta 1 I look.",
      "output_text.done 1 I look.",
      "content_part.done 1",
      "output_item.done 1 message",
      "output_item.added 2 function_call",
      "output_item.added 3 custom_tool_call",
      "custom_tool_call_input.delta 3 ***",
      'function_call_arguments.delta 2 {"a":1}',
      'function_call_arguments.done 2 {"a":1}',
      "output_item.done 2 function_call",
      "custom_tool_call_input.done 3 ***",
      "output_item.done 3 custom_tool_call",
      "completed",
    ]);
  });

  test("shows reasoning as a summary if the client asks for one", () => {
    const request = { reasoning: { summary: "auto" } };
    expect(sequenceOf(streamed([think("Hm"), end("stop")], request))).toEqual([
      "output_item.added 0 reasoning",
      "reasoning_summary_part.added 0",
      "reasoning_summary_text.delta 0 Hm",
      "reasoning_summary_text.done 0 Hm",
      "reasoning_summary_part.done 0",
      "output_item.done 0 reasoning",
      "completed",
    ]);
  });

  test("keeps arguments that arrive after a text", async () => {
    const steps = [call(0), give(0, '{"a"'), text("Wait."), give(0, ":1}"), end("calls")];
    const response = await understood(streamed(steps));
    expect(outputOf(response)).toMatchObject([
      { type: "function_call", arguments: '{"a":1}', status: "completed" },
      { type: "message", content: [{ text: "Wait." }] },
    ]);
    expect(whole(steps)["output"]).toEqual(response["output"]);
  });

  test("ends a call with complete arguments before a text, and adds no later text to it", () => {
    const words = sequenceOf(streamed([call(0), give(0, '{"a":1}'), text("Done."), give(0, "}"), end("calls")]));
    expect(words.indexOf("output_item.done 0 function_call")).toBeLessThan(
      words.indexOf("output_item.added 1 message"),
    );
    expect(words).toContain('function_call_arguments.done 0 {"a":1}');
  });

  test("fails a stream that breaks off, and finishes no open item", () => {
    const writer = writerOf({ stream: true });
    for (const tell of [text("I look."), call(0, { kind: "custom" }), give(0, "rm -rf /tmp")]) tell(writer);
    const fault = { status: 502, code: "upstream_error", message: "The model server failed." };
    const events = dataOf(writer.failure(fault));
    expect(events.filter(({ type }) => type === "response.output_item.done")).toHaveLength(1);
    expect(events.at(-1)).toMatchObject({
      type: "response.failed",
      response: {
        status: "failed",
        error: { code: "server_error", message: "The model server failed." },
        output: [
          { type: "message", status: "completed" },
          { type: "custom_tool_call", input: "rm -rf /tmp", status: "incomplete" },
        ],
      },
    });
  });

  test.each([
    ["context_length_exceeded", "context_length_exceeded"],
    ["service_unavailable", "server_is_overloaded"],
    ["unsupported_value", "invalid_prompt"],
    ["upstream_timeout", "server_error"],
    ["constructor", "server_error"],
  ])("begins a stream that fails before any text; code %s becomes %s", async (code, steps) => {
    const stream = writerOf({ stream: true }).failure({ status: 400, code, message: "No." });
    expect(dataOf(stream).map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.failed",
    ]);
    expect(await understood(stream)).toMatchObject({ status: "failed", error: { code: steps, message: "No." } });
  });

  test("writes a hundred thousand pieces in linear time", () => {
    const writer = writerOf({ stream: true });
    let length = 0;
    const begin = performance.now();
    for (let i = 0; i < 100_000; i++) {
      writer.text("ab ");
      length += writer.take().length;
    }
    writer.end({ reason: "stop" });
    length += writer.ending(counted).length;
    expect(length).toBeGreaterThan(10_000_000);
    expect(performance.now() - begin).toBeLessThan(withinMs(5_000));
  });
});

describe("an item", () => {
  test("gives a call without arguments an empty object", () => {
    const words = sequenceOf(streamed([call(0), end("calls")]));
    expect(words).toContain("function_call_arguments.delta 0 {}");
    expect(outputOf(whole([call(0), end("calls")]))[0]).toMatchObject({ arguments: "{}", status: "completed" });
    expect(outputOf(whole([call(0, { kind: "custom" }), end("calls")]))[0]).toMatchObject({ input: "" });
  });

  test("gives a call without a unique id an id of its own", () => {
    const steps = [call(0, { callId: "x" }), call(1, { callId: "x" }), call(2, { callId: "" }), end("calls")];
    expect(outputOf(whole(steps)).map((item) => item["call_id"])).toEqual(["x", "call_1_1", "call_1_2"]);
  });

  test("writes the namespace of a call's tool", () => {
    const steps = [call(0, { namespace: "mcp__files" }), end("calls")];
    expect(outputOf(whole(steps))[0]).toMatchObject({ namespace: "mcp__files", name: "look" });
  });

  test("reports the tier that the server reports, or else the requested one", () => {
    const tierOf = (served: readonly string[] | undefined) => {
      const writer = writerOf({ service_tier: "auto" });
      text("a")(writer);
      end("stop")(writer);
      return writer.whole({ ...counted, details: { served } })["service_tier"];
    };
    expect([tierOf(["us", "priority"]), tierOf(["us"]), tierOf(undefined)]).toEqual(["priority", "auto", "auto"]);
  });

  test("marks the item that a limit cut off as incomplete, and earlier ones as complete", () => {
    const response = whole([text("a"), call(0), give(0, "{}"), call(1), give(1, '{"a'), end("length")]);
    expect(response).toMatchObject({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } });
    expect(outputOf(response).map(({ status }) => status)).toEqual(["completed", "completed", "incomplete"]);
  });

  test("writes a part for each block of a message, and keeps probabilities of half characters", () => {
    const half = { token: "\\xf0", logprob: -1, bytes: [240], top_logprobs: [] };
    const other = { token: "b", logprob: -2, bytes: [98], top_logprobs: [] };
    const steps: ReplyStep[] = [text("a"), block, (sink) => sink.text("", [half]), (sink) => sink.text("b", [other])];
    expect(outputOf(whole([...steps, end("stop")]))[0]?.["content"]).toEqual([
      { type: "output_text", annotations: [], logprobs: [], text: "a" },
      { type: "output_text", annotations: [], logprobs: [half, other], text: "b" },
    ]);
  });

  test("ends reasoning when its kind changes", () => {
    const steps = [think("long"), think("short", true), end("stop")];
    expect(outputOf(whole(steps)).map(({ content }) => content)).toEqual([
      [{ type: "reasoning_text", text: "long" }],
      [{ type: "reasoning_text", text: "short" }],
    ]);
  });

  test("seals reasoning if the client asks, and keeps OpenAI's encrypted reasoning", () => {
    const include = ["reasoning.encrypted_content"];
    const sealed = outputOf(whole([think("a"), end("stop")], { include }))[0];
    expect(sealed?.["encrypted_content"]).toBe('own.{"text":"a"}');
    const signed: ReplyStep = (sink) => sink.proof({ kind: "signature", data: "s" });
    expect(outputOf(whole([think("a"), signed, end("stop")]))[0]?.["encrypted_content"]).toContain('"s"');
    const encrypted: ReplyStep = (sink) => sink.proof({ kind: "encrypted", data: "gAAA" });
    expect(outputOf(whole([encrypted, end("stop")], { include }))[0]?.["encrypted_content"]).toBe("gAAA");
    expect(outputOf(whole([think("a"), end("stop")]))[0]).not.toHaveProperty("encrypted_content");
  });
});

describe("the response", () => {
  test.each([
    ["stop", "completed", null],
    ["sequence", "completed", null],
    ["calls", "completed", null],
    ["pause", "completed", null],
    ["length", "incomplete", { reason: "max_output_tokens" }],
    ["context", "incomplete", { reason: "max_output_tokens" }],
    ["filter", "incomplete", { reason: "content_filter" }],
    ["refusal", "incomplete", { reason: "content_filter" }],
  ] as const)("ends a response by %s with status %s", (reason, status, incomplete_details) => {
    expect(whole([text("a"), end(reason)])).toMatchObject({ status, incomplete_details, error: null });
  });

  test("completes a response with a refusal in words", () => {
    expect(whole([refuse("No."), end("refusal")])).toMatchObject({
      status: "completed",
      output: [{ content: [{ type: "refusal", refusal: "No." }] }],
    });
  });

  test("repeats request members, with the vendor's defaults for missing ones", () => {
    const tools = [{ type: "function", name: "look", parameters: {} }];
    const response = whole([end("stop")], { tools, temperature: 0.2, text: { verbosity: "low", format: null } });
    expect(response).toMatchObject({
      ...{ id: "resp_1", object: "response", created_at: 7, model: "tiny", tools, temperature: 0.2, top_p: 1 },
      ...{ text: { format: { type: "text" }, verbosity: "low" }, tool_choice: "auto", store: false, metadata: {} },
      ...{ reasoning: { effort: null, summary: null }, output: [], instructions: null, parallel_tool_calls: true },
      usage: {
        ...{ input_tokens: 12, output_tokens: 7, total_tokens: 19 },
        input_tokens_details: { cached_tokens: 4, cache_write_tokens: 0 },
        output_tokens_details: { reasoning_tokens: 2 },
      },
    });
  });

  test("gives OpenAI's client the same response streamed and whole", async () => {
    const index = fc.nat(2);
    const step: fc.Arbitrary<ReplyStep> = fc.oneof(
      fc.string().map(text),
      fc.string().map(refuse),
      fc.tuple(fc.string(), fc.boolean()).map(([said, isSummary]) => think(said, isSummary)),
      fc.constant(block),
      fc
        .tuple(index, fc.constantFrom("function", "custom") as fc.Arbitrary<ReplyCall["kind"]>)
        .map(([at, kind]) => call(at, { kind })),
      fc.tuple(index, fc.constantFrom("", "{}", '{"a":1}', '{"a', "x")).map(([at, piece]) => give(at, piece)),
      fc.constantFrom("signature", "redacted", "encrypted").map(
        (kind): ReplyStep =>
          (sink) => {
            sink.proof({ kind: kind as "signature", data: "proof" });
          },
      ),
    );
    const request = fc.record({
      reasoning: fc.constantFrom(null, { summary: "auto" }),
      include: fc.constantFrom([], ["reasoning.encrypted_content"]),
    });
    const reasons = fc.constantFrom("stop", "calls", "length", "filter", "refusal") as fc.Arbitrary<ReplyEnd["reason"]>;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 8 }), reasons, request, async (steps, reason, asked) => {
        const allSteps = [...steps, end(reason)];
        expect(await understood(streamed(allSteps, asked))).toEqual(JSON.parse(JSON.stringify(whole(allSteps, asked))));
      }),
      { numRuns: 200 },
    );
  });
});

describe("a compaction", () => {
  const request = { input: [{ role: "user", content: "Hi" }, { type: "compaction_trigger" }] };
  const summed: ReplyStep[] = [
    (sink) => sink.reasoning("What was it?", false),
    (sink) => sink.text("They met "),
    (sink) => sink.text("in Oslo."),
    (sink) => sink.end({ reason: "stop" }),
  ];
  const item = { type: "compaction", id: "cmp_1_0", encrypted_content: "own.They met in Oslo." };

  test("writes a compaction as one sealed item, streamed and whole, whatever else the model writes", () => {
    expect(whole(summed, request)).toMatchObject({ status: "completed", output: [item] });
    const events = dataOf(streamed(summed, request));
    expect(events.slice(2)).toMatchObject([
      { type: "response.output_item.added", item },
      { type: "response.output_item.done", item },
      { type: "response.completed", response: { output: [item] } },
    ]);
  });

  test("writes no compaction for a summary that is cut off or empty", () => {
    const cut: ReplyStep[] = [...summed.slice(0, -1), (sink) => sink.end({ reason: "length" })];
    expect(whole(cut, request)).toMatchObject({ status: "incomplete", output: [] });
    expect(whole(summed.slice(-1), request)).toMatchObject({ output: [] });
  });

  test("compacts only for the last item: an earlier trigger is done", () => {
    const before = { input: [{ type: "compaction_trigger" }, { role: "user", content: "Hi" }] };
    expect(whole(summed.slice(1), before)).toMatchObject({ output: [{ type: "message" }] });
  });
});
