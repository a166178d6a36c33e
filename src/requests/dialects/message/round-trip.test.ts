// Tests that a conversation that Messages can express stays the same when it is written and read again.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { messageRequest } from "../../../wire/messages.ts";
import type { Conversation, ConversationMessage } from "../conversation/conversation.ts";
import { messageFormat } from "./format.ts";

const seal = { seal: () => "", open: () => undefined };
const place = "p";
/** Texts that are not blank, because Anthropic refuses blank texts. */
const words = fc.string({ minLength: 1 }).filter((text) => text.trim() !== "");
const id = fc.stringMatching(/^[a-zA-Z0-9_-]{1,20}$/);
const cache = fc.option(fc.constantFrom({ type: "ephemeral" }, { type: "ephemeral", ttl: "1h" }), { nil: undefined });
const name = fc.stringMatching(/^[a-zA-Z0-9_-]{1,20}$/);
const base64 = fc.uint8Array({ minLength: 1, maxLength: 9 }).map((bytes) => Buffer.from(bytes).toString("base64"));
const json = fc.dictionary(
  fc.string().filter((key) => key !== "__proto__"),
  fc.oneof(words, fc.integer(), fc.boolean(), fc.constant(null)),
);

const text = fc.record({ type: fc.constant("text" as const), text: words, cache });
const image = fc.record({
  type: fc.constant("image" as const),
  source: fc.oneof(
    fc.webUrl().map((url) => ({ kind: "url" as const, url })),
    base64.map((data) => ({ kind: "data" as const, mediaType: "image/png", data })),
  ),
  cache,
  place: fc.constant(place),
});
const file = fc.record({
  type: fc.constant("file" as const),
  source: fc.oneof(
    fc.webUrl().map((url) => ({ kind: "url" as const, url })),
    base64.map((data) => ({ kind: "data" as const, mediaType: "application/pdf", data })),
    words.map((said) => ({ kind: "text" as const, text: said })),
  ),
  name: fc.option(words, { nil: undefined }),
  cache,
  place: fc.constant(place),
});
const part = fc.oneof(text, image, file);
const answer = fc.oneof(
  text,
  fc.record({
    type: fc.constant("reasoning" as const),
    text: fc.string(),
    isSummary: fc.constant(false),
    proof: fc.record({ kind: fc.constant("signature" as const), data: words }),
  }),
  fc.record({
    type: fc.constant("reasoning" as const),
    text: fc.constant(""),
    isSummary: fc.constant(false),
    proof: fc.record({ kind: fc.constant("redacted" as const), data: words }),
  }),
  fc.record({
    type: fc.constant("call" as const),
    callId: id,
    kind: fc.constant("function" as const),
    name,
    input: json.map((input) => JSON.stringify(input)),
    cache,
  }),
);
const result = fc.record({
  parts: fc.array(part, { maxLength: 2 }),
  failed: fc.constantFrom(true, undefined),
  cache,
});

const user = fc
  .array(part, { minLength: 1, maxLength: 3 })
  .map((parts): ConversationMessage => ({ role: "user", parts, place }));
/** An assistant's turn with a result for each of its calls. */
const assistant = fc
  .tuple(fc.array(answer, { minLength: 1, maxLength: 4 }), fc.array(result, { minLength: 4, maxLength: 4 }))
  .map(([parts, results]): ConversationMessage[] => [
    { role: "assistant", parts, place },
    ...parts.flatMap((one, at): ConversationMessage[] => {
      const given = results[at];
      return one.type === "call" && given
        ? [{ role: "tool", callId: one.callId, kind: "function", ...given, place }]
        : [];
    }),
  ]);
/** Rounds in which roles alternate, results precede the user's text, and no two calls have the same id. */
const rounds = fc.array(fc.tuple(user, assistant), { maxLength: 3 }).filter((said) => {
  const ids = said.flatMap(([, turns]) => turns.flatMap((turn) => (turn.role === "tool" ? [turn.callId] : [])));
  return new Set(ids).size === ids.length;
});
const turns = fc
  .tuple(fc.option(words, { nil: undefined }), rounds, user)
  .map(([system, said, last]): ConversationMessage[] => [
    ...(system === undefined
      ? []
      : [{ role: "system" as const, parts: [{ type: "text" as const, text: system }], place }]),
    ...said.flatMap(([asked, answered]) => [asked, ...answered]),
    last,
  ]);

const tools = fc.uniqueArray(
  fc.record({
    kind: fc.constant("function" as const),
    name,
    description: fc.option(words, { nil: undefined }),
    parameters: json.map((properties) => ({
      ...{ type: "object", properties, required: Object.keys(properties) },
      additionalProperties: false,
    })),
    strict: fc.constantFrom(true, undefined),
    cache,
    place: fc.constant(place),
  }),
  { maxLength: 3, selector: (tool) => tool.name },
);
const thinking = fc.constantFrom(
  undefined,
  { enabled: false },
  { enabled: true },
  { enabled: true, effort: "high", shown: "omitted" },
  { enabled: true, budget: 2048, shown: "auto" },
);
const sampling = fc.record({
  temperature: fc.option(fc.double({ min: 0, max: 0.99, noNaN: true }), { nil: undefined }),
  topP: fc.option(fc.double({ min: 0, max: 0.99, noNaN: true }), { nil: undefined }),
  topK: fc.option(fc.nat(100), { nil: undefined }),
  stop: fc.option(fc.array(words, { minLength: 1, maxLength: 2 }), { nil: undefined }),
});

const anyConversations = fc.record({
  turns,
  tools,
  parallelCalls: fc.constantFrom(undefined),
  thinking,
  output: fc.option(
    json.map((value) => ({
      ...{ type: "schema" as const, name: "answer", strict: true },
      schema: { type: "object", properties: {}, additionalProperties: false, default: value },
    })),
    { nil: undefined },
  ),
  maxTokens: fc.integer({ min: 1, max: 100_000 }),
  sampling,
  stream: fc.boolean(),
  hints: fc.record({ user: fc.option(words, { nil: undefined }), serviceTier: fc.constantFrom(undefined, "auto") }),
  others: fc.constant({}),
});
/**
 * Leaves out conversations whose thinking budget leaves no tokens for the answer, because the writer lowers such a
 * budget.
 */
const conversations = anyConversations.filter((one) => ("budget" in (one.thinking ?? {}) ? 2048 : 0) < one.maxTokens);

/** Drops undefined members, and places, which belong to another request. */
function plain(conversation: Conversation): unknown {
  return JSON.parse(
    JSON.stringify(conversation, (key, value) => (key === "place" || key === "stopPlace" ? undefined : value)),
  );
}

test("reads a conversation as it was written, in a body that fits the schema", () => {
  fc.assert(
    fc.property(conversations, (conversation: Conversation) => {
      const { body, leftOut, names } = messageFormat.writeRequest(conversation, "claude-opus-5");
      const parsed: unknown = JSON.parse(body);
      expect(leftOut).toEqual([]);
      expect(names.size).toBe(0);
      expect(plain(messageFormat.readRequest(messageRequest.parse(parsed), seal))).toEqual(plain(conversation));
    }),
    { numRuns: 300 },
  );
});
