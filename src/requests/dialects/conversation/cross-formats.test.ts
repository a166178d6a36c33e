// Tests that a conversation in two formats survives the way from one to the other and back.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Seal } from "../../../domain/seal.ts";
import { chatFormat } from "../chat/format.ts";
import { messageFormat } from "../message/format.ts";
import { responseFormat } from "../response/format.ts";
import { CollectedReply } from "./collected-reply.ts";
import type { AnswerPart, Conversation, ConversationMessage, Part, Tool } from "./conversation.ts";
import type { ConversationFormat } from "./format.ts";
import type { ReplyEnd, ReplyHead, ReplySink, ReplyUsage } from "./reply.ts";

type Json = Record<string, unknown>;
type FormatName = "chat" | "response" | "message";

const formats: Readonly<Record<FormatName, ConversationFormat>> = {
  chat: chatFormat,
  response: responseFormat,
  message: messageFormat,
};

/**
 * What one of two formats cannot express, or reads back as something else, for each pair of formats. Other things are
 * left out of all pairs: in a message, chat completions have one thought, one text and then calls, and their writer
 * omits user names, hints, `tool_choice: "none"`, verbosity and file URLs, which servers refuse; Messages requires a
 * token limit; sampling options other than temperature and top_p exist in only one format each; proofs belong to one
 * vendor.
 */
const cannotSay: Readonly<Record<string, ReadonlySet<string>>> = {
  // Responses has no stop texts, and OpenAI refuses earlier reasoning without a proof.
  "chat response": new Set(["stop", "earlier thought"]),
  // Messages accepts no reasoning without a proof, and writes a refusal as text, a filter as a refusal, and an effort
  // as thinking.
  "chat message": new Set(["thought", "refusal", "filter", "effort"]),
  "message response": new Set(["thought", "refusal", "filter", "effort", "stop"]),
};
const pairs = (["chat", "response", "message"] as const).flatMap((a) =>
  (["chat", "response", "message"] as const).flatMap((b) => (a === b ? [] : [[a, b] as const])),
);

function mayHave(a: FormatName, b: FormatName, what: string): boolean {
  return !cannotSay[[a, b].sort().join(" ")]?.has(what);
}

const seal: Seal = { seal: (text) => `own.${Buffer.from(text).toString("base64url")}`, open: () => undefined };
const place = "p";
/** Texts that are not blank, because Anthropic refuses blank texts. */
const words = fc.string({ minLength: 1, unit: "grapheme" }).filter((text) => text.isWellFormed() && text.trim() !== "");
const name = fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9_-]{0,20}$/);
const json = fc.dictionary(
  fc.string().filter((key) => key !== "__proto__"),
  fc.oneof(words, fc.integer(), fc.boolean(), fc.constant(null)),
  { maxKeys: 3 },
);
const base64 = fc.uint8Array({ minLength: 1, maxLength: 9 }).map((bytes) => Buffer.from(bytes).toString("base64"));
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const text = words.map((said): Part & AnswerPart => ({ type: "text", text: said }));
const part: fc.Arbitrary<Part> = fc.oneof(
  text,
  fc.webUrl().map((url): Part => ({ type: "image", source: { kind: "url", url }, place })),
  base64.map((data): Part => ({ type: "image", source: { kind: "data", mediaType: "image/png", data }, place })),
  fc.tuple(base64, words).map(([data, named]): Part => {
    return { type: "file", source: { kind: "data", mediaType: "application/pdf", data }, name: `${named}.pdf`, place };
  }),
);
const call = fc.record({ name, input: json.map((input) => JSON.stringify(input)) });

interface Round {
  asked: Part[];
  thought: string | undefined;
  said: (Part & AnswerPart) | undefined;
  calls: { name: string; input: string; result: string | undefined }[];
}

const round = fc.record({
  asked: fc.array(part, { minLength: 1, maxLength: 3 }),
  thought: maybe(words),
  said: maybe(text),
  calls: fc.array(
    fc.tuple(call, maybe(words)).map(([called, result]) => ({ ...called, result })),
    { maxLength: 3 },
  ),
});

/** Returns turns in which users and assistants alternate and each call has its result. */
function turnsOf(rounds: readonly Round[], withThoughts: boolean): ConversationMessage[] {
  let calls = 0;
  return rounds.flatMap(({ asked, thought, said, calls: called }): ConversationMessage[] => {
    const numbered = called.map((one) => ({ ...one, callId: `call_${calls++}` }));
    const parts: AnswerPart[] = [
      ...(thought !== undefined && withThoughts
        ? [{ type: "reasoning" as const, text: thought, isSummary: false }]
        : []),
      ...(said ? [said] : []),
      ...numbered.map(({ callId, name: of, input }) => ({
        type: "call" as const,
        callId,
        kind: "function" as const,
        name: of,
        input,
      })),
    ];
    const user: ConversationMessage = { role: "user", parts: asked, place };
    if (!said && numbered.length === 0)
      return [{ ...user }, { role: "assistant", parts: [...parts, { type: "text", text: "." }], place }];
    const results = numbered.map(
      ({ callId, result }): ConversationMessage => ({
        role: "tool",
        kind: "function",
        callId,
        parts: result === undefined ? [] : [{ type: "text", text: result }],
        place,
      }),
    );
    return [user, { role: "assistant", parts, place }, ...results];
  });
}

/** Schemas that both vendors accept in strict mode. */
const schemas = json.map((properties) => ({
  ...{ type: "object", properties, required: Object.keys(properties) },
  additionalProperties: false,
}));
const tools: fc.Arbitrary<Tool[]> = fc.uniqueArray(
  fc.record({
    kind: fc.constant("function" as const),
    name,
    description: maybe(words),
    parameters: schemas,
    strict: fc.constantFrom(true, undefined),
    place: fc.constant(place),
  }),
  { maxLength: 3, selector: (tool) => tool.name },
);

function conversations(a: FormatName, b: FormatName): fc.Arbitrary<Conversation> {
  const whereSaid = <T>(what: string, arbitrary: fc.Arbitrary<T>) =>
    mayHave(a, b, what) ? maybe(arbitrary) : fc.constant(undefined);
  const below = fc.double({ min: 0, max: 0.99, noNaN: true }).map((value) => value + 0);
  return fc
    .record({
      system: maybe(words),
      rounds: fc.array(round, { maxLength: 3 }),
      last: fc.array(part, { minLength: 1, maxLength: 2 }),
      tools,
      choice: fc.constantFrom("auto", "required", "tool", undefined),
      single: fc.boolean(),
      output: maybe(schemas.map((schema) => ({ type: "schema" as const, name: "answer", schema, strict: true }))),
      effort: whereSaid("effort", fc.constantFrom("low", "medium", "high")),
      stop: whereSaid("stop", fc.array(words, { minLength: 1, maxLength: 2 })),
      maxTokens: fc.integer({ min: 1, max: 100_000 }),
      temperature: maybe(below),
      topP: maybe(below),
      stream: fc.boolean(),
    })
    .map(({ system, rounds, last, choice, single, effort, stop, temperature, topP, ...rest }): Conversation => {
      const [first] = rest.tools;
      const chosen = first && choice;
      return {
        turns: [
          ...(system === undefined
            ? []
            : [{ role: "system" as const, parts: [{ type: "text" as const, text: system }], place }]),
          ...turnsOf(rounds, mayHave(a, b, "thought") && mayHave(a, b, "earlier thought")),
          { role: "user", parts: last, place },
        ],
        toolChoice:
          first && chosen === "tool"
            ? { type: "tool", kind: "function", name: first.name }
            : chosen && chosen !== "tool"
              ? { type: chosen }
              : undefined,
        parallelCalls: chosen && single ? false : undefined,
        thinking: effort === undefined ? undefined : { effort },
        sampling: { temperature, topP, stop },
        hints: {},
        others: {},
        ...rest,
      };
    });
}

/** Drops places, ids of items and members with their default. */
function plain(conversation: Conversation): unknown {
  return JSON.parse(
    JSON.stringify(conversation, (key, value: unknown) => {
      if (key === "place" || key === "stopPlace" || key === "shown" || (key === "id" && value !== undefined))
        return undefined;
      return key === "strict" && value === false ? undefined : value;
    }),
  );
}

function written(format: ConversationFormat, conversation: Conversation): Conversation {
  const { body, leftOut } = format.writeRequest(conversation, "tiny");
  expect(leftOut).toEqual([]);
  return format.readRequest(JSON.parse(body), seal);
}

type Step = (sink: ReplySink) => void;

interface Reported {
  steps: Step[];
  usage: ReplyUsage;
}

/** Returns answers in which the arguments of several calls are interleaved in pieces. */
function answers(a: FormatName, b: FormatName): fc.Arbitrary<Reported> {
  const ends: ReplyEnd["reason"][] = ["stop", "length", ...(mayHave(a, b, "filter") ? (["filter"] as const) : [])];
  return fc
    .record({
      thought: maybe(fc.array(words, { minLength: 1, maxLength: 3 })),
      said: fc.array(words, { maxLength: 3 }),
      refused: mayHave(a, b, "refusal") ? maybe(words) : fc.constant(undefined),
      calls: fc.array(call, { maxLength: 3 }),
      cut: fc.nat(5),
      reason: fc.constantFrom(...ends),
      usage: fc.record({
        promptTokens: fc.integer({ min: 100, max: 1000 }),
        cachedTokens: fc.nat(50),
        cacheWriteTokens: fc.nat(50),
        completionTokens: fc.integer({ min: 100, max: 1000 }),
        reasoningTokens: fc.nat(100),
      }),
    })
    .map(({ thought = [], said, refused, calls, cut, reason, usage }): Reported => {
      const steps: Step[] = [
        ...thought.map(
          (piece): Step =>
            (sink) =>
              sink.reasoning(piece, false),
        ),
        ...said.map(
          (piece): Step =>
            (sink) =>
              sink.text(piece),
        ),
        ...(refused === undefined ? [] : [(sink: ReplySink) => sink.refusal(refused)]),
        ...calls.map(
          ({ name: of }, index): Step =>
            (sink) => {
              sink.call(index, { callId: `call_${index}`, kind: "function", name: of });
            },
        ),
        ...calls.map(
          ({ input }, index): Step =>
            (sink) =>
              sink.arguments(index, input.slice(0, cut)),
        ),
        ...calls.map(
          ({ input }, index): Step =>
            (sink) =>
              sink.arguments(index, input.slice(cut)),
        ),
        (sink) => sink.usage(usage),
        (sink) =>
          sink.end({
            reason:
              reason !== "stop" ? reason : calls.length > 0 ? "calls" : refused === undefined ? "stop" : "refusal",
          }),
      ];
      return { steps, usage };
    });
}

function headOf(stream: boolean): ReplyHead {
  const request = { stream, ...(stream ? { stream_options: { include_usage: true } } : {}) };
  return { id: "answer_1", model: "tiny", created: 7, promptTokens: 10, request, seal };
}

/** Passes an answer from `tell` to the sink by way of a stream that `format` writes and reads. */
function streamedThrough(format: ConversationFormat, usage: ReplyUsage, tell: (sink: ReplySink) => void) {
  return (sink: ReplySink) => {
    const writer = format.writer(headOf(true));
    tell(writer);
    const stream = writer.take() + writer.ending(usage);
    const reader = format.reader(new Map());
    for (const event of stream.split("\n\n")) {
      const data = event.slice(event.indexOf("data: ") + "data: ".length);
      if (data === "[DONE]") reader.done?.(sink);
      else if (event !== "") reader.event(JSON.parse(data), sink);
    }
  };
}

function wholeThrough(format: ConversationFormat, usage: ReplyUsage, tell: (sink: ReplySink) => void) {
  return (sink: ReplySink) => {
    const writer = format.writer(headOf(false));
    tell(writer);
    const answer: Json = JSON.parse(JSON.stringify(writer.whole(usage)));
    format.reader(new Map()).whole(answer, sink);
  };
}

/** Collects a reply without proofs and ids of items, which differ by format. */
function collected(tell: (sink: ReplySink) => void) {
  const reply = new CollectedReply();
  tell(reply);
  const { parts, ended, used } = reply;
  return {
    parts: JSON.parse(JSON.stringify(parts.map((one) => ({ ...one, id: undefined, proof: undefined })))),
    ended,
    used,
  };
}

describe.each(pairs)("translation from %s to %s", (a, b) => {
  const [from, to] = [formats[a], formats[b]];

  test("preserves a conversation", () => {
    fc.assert(
      fc.property(conversations(a, b), (conversation) => {
        const first = written(from, conversation);
        expect(plain(first)).toEqual(plain(conversation));
        const second = written(to, first);
        expect(plain(second)).toEqual(plain(conversation));
        expect(plain(written(from, second))).toEqual(plain(conversation));
      }),
      { numRuns: 100 },
    );
  });

  test.each([
    ["stream", streamedThrough],
    ["whole answer", wholeThrough],
  ] as const)("writes a %s back unchanged", (_, through) => {
    fc.assert(
      fc.property(answers(a, b), ({ steps, usage }) => {
        const tell = (sink: ReplySink) => {
          for (const step of steps) step(sink);
        };
        const reported = collected(tell);
        expect(collected(through(from, usage, tell))).toEqual(reported);
        expect(collected(through(to, usage, through(from, usage, tell)))).toEqual(reported);
      }),
      { numRuns: 100 },
    );
  });
});

describe("a tool without arguments", () => {
  const schemas = [
    "left out",
    null,
    {},
    [],
    { type: "object" },
    { type: "object", properties: null },
    { properties: [] },
  ];
  const requestOf: Readonly<Record<FormatName, (schema: unknown) => Json>> = {
    chat: (parameters) => ({
      ...{ model: "m", messages: [{ role: "user", content: "a" }] },
      tools: [{ type: "function", function: { name: "now", parameters } }],
    }),
    response: (parameters) => ({
      ...{ model: "m", input: "a" },
      tools: [{ type: "function", name: "now", parameters }],
    }),
    message: (inputSchema) => ({
      ...{ model: "m", max_tokens: 9, messages: [{ role: "user", content: "a" }] },
      tools: [{ name: "now", input_schema: inputSchema }],
    }),
  };
  const schemaOf: Readonly<Record<FormatName, (tool: Json) => unknown>> = {
    chat: (tool) => (tool["function"] as Json)["parameters"],
    response: (tool) => tool["parameters"],
    message: (tool) => tool["input_schema"],
  };

  test.each(pairs)(
    "writes a tool of %s without arguments as an object with properties for a server of %s",
    (from, to) => {
      for (const schema of schemas) {
        const request = requestOf[from](schema === "left out" ? undefined : schema);
        const body = JSON.parse(JSON.stringify(request)) as Json;
        const written = formats[to].writeRequest(formats[from].readRequest(body, seal), "m").body;
        const [tool] = (JSON.parse(written) as { tools: Json[] }).tools;
        expect([schema, schemaOf[to](tool as Json)]).toEqual([schema, { type: "object", properties: {} }]);
      }
    },
  );
});
