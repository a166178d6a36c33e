// Tests that responses of lenient servers reach clients with all members that OpenAI's SDKs read.
import { expect, test } from "bun:test";
import { eventFaults, responseFaults } from "../../../../tests/support/agents/open-responses.ts";
import { completeResponse } from "../../../../tests/support/complete-response.ts";
import { decodedRequest } from "../../../../tests/support/decoded-request.ts";
import { leanEvents } from "../../../../tests/support/lean-responses.ts";
import { ByteSpan } from "../../../base/bytes/byte-span.ts";
import type { Serving } from "../answer.ts";
import { dialects } from "../dialects.ts";

type Json = Record<string, unknown>;

const engine = { name: "e", redact: (text: string) => text, models: async () => [] } as never;
const serving: Serving = { model: { id: "m", context: undefined }, deployment: { engine } };
const names = { id: "resp_own", created: 1, ownId: false };
const request = decodedRequest({ input: "Hi", stream: true }, "response");

/** Returns the events that a client gets. */
function sentFor(events: readonly Json[]): Json[] {
  const stream = dialects.response.stream(request, names);
  stream.servedBy(serving);
  let text = "";
  for (const event of events) text += stream.translate(JSON.stringify(event), undefined);
  text += stream.ending();
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, line = ""]) => JSON.parse(line) as Json);
}

const lastOf = (events: readonly Json[]) => sentFor(events).at(-1)?.["response"];
const response = (more: Json = {}) => ({ id: "r", object: "response", model: "m", status: "completed", ...more });
const created = { type: "response.created", response: response({ status: "in_progress", output: [] }) };
const completed = (more: Json = {}) => ({ type: "response.completed", response: response(more) });
const done = (output_index: number, item: Json) => ({ type: "response.output_item.done", output_index, item });
const message = (id = "i") => ({
  ...{ id, type: "message", role: "assistant", status: "completed" },
  content: [{ type: "output_text", text: "Hi", annotations: [] }],
});
const call = (more: Json = {}) => ({
  id: "f",
  type: "function_call",
  call_id: "a",
  name: "look",
  arguments: "[1]",
  ...more,
});

test.each([[[]], [null], [undefined]])("fills the output %j of the last event with the streamed items", (output) => {
  expect(lastOf([created, done(0, message()), done(1, call()), completed({ output })])).toMatchObject({
    output: [message(), call()],
  });
  expect(lastOf([created, done(0, message("i")), done(0, message("j")), completed({ output })])).toMatchObject({
    output: [message("i"), message("j")],
  });
});

test("keeps at most 8 MiB of items for a last event without them", () => {
  const picture = (id: string) => ({ id, type: "image_generation_call", status: "completed", result: "a".repeat(5e6) });
  const output = (
    lastOf([created, done(0, picture("p")), done(1, picture("q")), done(2, message()), completed()]) as Json
  )["output"] as Json[];
  expect(output.map(({ id }) => id)).toEqual(["p", "i"]);
});

test("keeps one id for a response that its server does not begin", () => {
  const sent = sentFor([done(0, message()), completed({ output: [message()] })]);
  const ids = sent.flatMap(({ response: held }) => ((held as Json | undefined) ? [(held as Json)["id"]] : []));
  expect(ids).toEqual(["resp_own", "resp_own", "resp_own"]);
});

test.each([
  [{ call_id: undefined }, { call_id: "f" }],
  [{ arguments: { a: 1 } }, { arguments: '{"a":1}' }],
  [{ arguments: null }, { arguments: "{}" }],
  [{ arguments: "" }, { arguments: "{}" }],
  [{ arguments: "", status: "incomplete" }, { arguments: "" }],
])("completes a call with %j, streamed and whole", (more, expected) => {
  const output = [call(more)];
  expect(lastOf([created, done(0, call(more)), completed({ output })])).toMatchObject({ output: [expected] });
  const bytes = ByteSpan.of(Buffer.from(JSON.stringify(response({ output }))));
  const answer = dialects.response.readAnswer(bytes, request, serving, names);
  expect(JSON.parse(answer.text)).toMatchObject({ output: [expected] });
});

test("adds no empty arguments to a call that had arguments before", () => {
  const reported = { type: "response.function_call_arguments.done", output_index: 0, item_id: "f", arguments: "[1]" };
  const begun = { type: "response.output_item.added", output_index: 0, item: call({ arguments: "" }) };
  const sent = sentFor([created, begun, reported, done(0, call({ arguments: "" })), completed({ output: [] })]);
  const items = sent.flatMap(({ item, response: held }) => item ?? (held as Json | undefined)?.["output"] ?? []);
  expect(JSON.stringify(items)).not.toContain("{}");
});

test.each([
  ["response.incomplete", undefined, "incomplete"],
  ["response.incomplete", "completed", "incomplete"],
  ["response.completed", "in_progress", "completed"],
  ["response.completed", undefined, "completed"],
])("reads the event %s with the status %s as %s", (type, status, reported) => {
  expect(lastOf([created, { type, response: response({ status, output: [message()] }) }])).toMatchObject({
    status: reported,
  });
});

const whole = (reported: Json, asked: Json = {}) => {
  const bytes = ByteSpan.of(Buffer.from(JSON.stringify(reported)));
  const answer = dialects.response.readAnswer(bytes, decodedRequest({ input: "Hi", ...asked }, "response"), serving, {
    ...names,
    members: { store: false, previous_response_id: null, conversation: null },
  });
  return { text: answer.text, response: JSON.parse(answer.text) as Json, usage: answer.usage };
};

test("keeps the bytes of a complete response", () => {
  const reported = { ...completeResponse, model: "m" };
  expect(whole(reported).text).toBe(JSON.stringify(reported));
});

test.each(Object.keys(completeResponse).filter((name) => name !== "output"))(
  "fills in %s that a server leaves out of a response",
  (name) => {
    const { text, response } = whole({ ...completeResponse, model: "m", [name]: undefined });
    expect(responseFaults(response)).toEqual([]);
    const { [name as "id"]: _, ...rest } = { ...completeResponse, model: "m" };
    expect(text).toEndWith(JSON.stringify(rest).slice(1));
  },
);

test.each([
  ["id", "msg_own_0"],
  ["status", "completed"],
  ["role", "assistant"],
])("fills in %s that a server leaves out of a message", (name, value) => {
  const { response } = whole({ ...completeResponse, output: [{ ...message(), [name]: undefined }] });
  expect(response["output"]).toEqual([{ ...message(), [name]: value }]);
});

test.each([[{ type: "output_text", text: "Hi" }], [{ type: "output_text", text: "Hi", annotations: null }]])(
  "adds annotations to the part %j of a message",
  (part) => {
    const { response } = whole({ ...completeResponse, output: [{ ...message(), content: [part] }] });
    expect(response["output"]).toEqual([{ ...message(), content: [{ ...part, annotations: [] }] }]);
  },
);

test("gives calls without ids an id for each place", () => {
  const bare = { type: "function_call", name: "look", arguments: "{}" };
  const { response } = whole({ ...completeResponse, output: [bare, bare] });
  expect(response["output"]).toEqual([
    { ...bare, id: "fc_own_0", call_id: "call_own_0", status: "completed" },
    { ...bare, id: "fc_own_1", call_id: "call_own_1", status: "completed" },
  ]);
});

test("removes null content, proofs and statuses from reasoning", () => {
  const thought = { id: "rs", type: "reasoning", content: null, encrypted_content: null, status: null };
  const { response } = whole({ ...completeResponse, output: [thought, message()] });
  expect(response["output"]).toEqual([{ id: "rs", type: "reasoning", summary: [] }, message()]);
});

test("marks the last item of a response that was cut off as incomplete", () => {
  const bare = { ...message(), status: undefined };
  const { response } = whole({ ...completeResponse, status: "incomplete", output: [bare, bare] });
  expect(response["output"]).toEqual([message(), { ...message(), status: "incomplete" }]);
});

test("adds missing figures to usage, and counts the same", () => {
  const figures = { input_tokens: 30, output_tokens: 9, input_tokens_details: { cached_tokens: 4, audio_tokens: 1 } };
  const { response, usage } = whole({ ...completeResponse, usage: figures });
  expect(response["usage"]).toEqual({
    ...figures,
    total_tokens: 39,
    output_tokens_details: { reasoning_tokens: 0 },
  });
  expect(usage).toMatchObject({ promptTokens: 30, completionTokens: 9, estimated: false });
});

test("completes tools, text and reasoning that a server repeats unchanged", () => {
  const schema = { type: "json_schema", name: "n", schema: {} };
  const { response } = whole({
    ...completeResponse,
    tools: [{ type: "function", name: "look" }, { type: "web_search" }],
    text: { format: schema, verbosity: null },
    reasoning: { effort: "low" },
  });
  expect(response).toMatchObject({
    tools: [
      { type: "function", name: "look", description: null, parameters: null, strict: null },
      { type: "web_search" },
    ],
    text: { format: { ...schema, description: null, strict: false } },
    reasoning: { effort: "low", summary: null },
  });
  expect(response["text"]).not.toHaveProperty("verbosity");
});

test("passes the events of a strict server unchanged", () => {
  const stream = dialects.response.stream(request, names);
  stream.servedBy(serving);
  const begun = { ...completeResponse, model: "m", status: "in_progress", completed_at: null, output: [], usage: null };
  const [item] = completeResponse.output;
  const part = { type: "output_text", text: "Hello", annotations: [], logprobs: [] };
  const at = { item_id: "msg_up", output_index: 0, content_index: 0 };
  const events = [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress", content: [] } },
    { type: "response.content_part.added", ...at, part: { ...part, text: "" } },
    { type: "response.output_text.delta", ...at, delta: "Hel", logprobs: [] },
    { type: "response.output_text.delta", ...at, delta: "lo", logprobs: [] },
    { type: "response.output_text.done", ...at, text: "Hello", logprobs: [] },
    { type: "response.content_part.done", ...at, part },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: { ...completeResponse, model: "m" } },
  ].map((event, number) => ({ ...event, sequence_number: number + 1 }));
  let got = "";
  for (const event of events) got += stream.translate(JSON.stringify(event, null, 0), undefined);
  const expected = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
  expect(got + stream.ending()).toBe(expected);
});

/**
 * Returns the client's events after checking that they follow the Open Responses specification, numbered and in order.
 */
function documented(events: readonly Json[]): Json[] {
  const sent = sentFor(events);
  expect(sent.flatMap((event) => eventFaults(event).map((fault) => `${String(event["type"])} ${fault}`))).toEqual([]);
  expect(sent.map((event) => event["sequence_number"])).toEqual(sent.map((_, number) => number));
  return sent;
}

const outputOf = (sent: readonly Json[]) => (sent.at(-1)?.["response"] as Json | undefined)?.["output"];
const shortNames = (events: readonly Json[]) => events.map(({ type }) => String(type).replace("response.", ""));
const begin = ["created", "in_progress"];
const textEvents = (...deltas: readonly string[]) => [
  ...["output_item.added", "content_part.added", ...deltas.map(() => "output_text.delta")],
  ...["output_text.done", "content_part.done", "output_item.done"],
];
const callEvents = [
  ...["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"],
];
const thoughtEvents = [
  ...["output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.done"],
  ...["content_part.done", "output_item.done"],
];

test.each(["deltas", "items", "end"] as const)("inserts the events that a lean stream of %s leaves out", (kind) => {
  const sent = documented(leanEvents({ thought: "Hm.", text: ["Hel", "lo"], call: "look" }, kind));
  const deltas = kind === "end" ? ["Hello"] : ["Hel", "lo"];
  const expected = [...begin, ...thoughtEvents, ...textEvents(...deltas), ...callEvents, "completed"];
  expect(shortNames(sent).sort()).toEqual(expected.sort());
  expect(outputOf(sent)).toMatchObject([
    { type: "reasoning", id: "rs_own_0", content: [{ text: "Hm." }] },
    { type: "message", id: "msg_own_1", content: [{ text: "Hello", annotations: [] }] },
    { type: "function_call", id: "fc_own_2", call_id: "call_own_2", name: "look", arguments: '{"city":"Oslo"}' },
  ]);
  const ids = new Set(sent.flatMap(({ item_id: id, item }) => id ?? (item as Json | undefined)?.["id"] ?? []));
  expect([...ids]).toEqual(["rs_own_0", "msg_own_1", "fc_own_2"]);
});

test("builds an answer that arrived only in pieces", () => {
  const sent = documented([
    { type: "response.output_text.delta", delta: "Hel" },
    { type: "response.output_text.delta", delta: "lo" },
    { type: "response.completed", response: {} },
  ]);
  expect(shortNames(sent)).toEqual([...begin, ...textEvents("Hel", "lo"), "completed"]);
  expect(outputOf(sent)).toEqual([
    { ...message("msg_own_0"), content: [{ type: "output_text", text: "Hello", annotations: [], logprobs: [] }] },
  ]);
});

test("drops repeated events", () => {
  const item = message();
  const at = { item_id: "i", output_index: 0, content_index: 0 };
  const [part] = item.content;
  const once: Json[] = [
    ...[created, { type: "response.in_progress", response: response({ status: "in_progress" }) }],
    { type: "response.output_item.added", output_index: 0, item: { ...item, content: [] } },
    { type: "response.content_part.added", ...at, part: { ...part, text: "" } },
    { type: "response.output_text.delta", ...at, delta: "Hi" },
    { type: "response.output_text.done", ...at, text: "Hi" },
    { type: "response.content_part.done", ...at, part },
    ...[done(0, item), completed({ output: [item] })],
  ];
  const numbered = once.map((event, sequence_number) => ({ ...event, sequence_number }));
  const expected = documented(numbered);
  expect(documented(numbered.flatMap((event) => [event, event]))).toEqual(expected);
  const isDelta = ({ type }: Json) => type === "response.output_text.delta";
  expect(documented(once.flatMap((event) => (isDelta(event) ? [event] : [event, event])))).toMatchObject(expected);
});

test("separates items that share one place, and keeps the id of an item whose id changes", () => {
  const sent = documented([
    created,
    { type: "response.output_item.added", output_index: 0, item: { ...message("one"), content: [] } },
    { type: "response.output_text.delta", output_index: 0, item_id: "two", delta: "Hi" },
    done(0, message("three")),
    { type: "response.output_item.added", output_index: 0, item: call({ arguments: "" }) },
    { type: "response.function_call_arguments.delta", output_index: 0, item_id: "f", delta: "[1]" },
    ...[done(0, call()), completed({ output: [message("three"), call()] })],
  ]);
  expect(shortNames(sent)).toEqual([...begin, ...textEvents("Hi"), ...callEvents, "completed"]);
  const placed = sent.filter(({ output_index: index }) => index !== undefined);
  const places = placed.map(({ output_index: index, item_id: id, item }) => [index, id ?? (item as Json)["id"]]);
  expect(places).toEqual([...textEvents("Hi").map(() => [0, "one"]), ...callEvents.map(() => [1, "f"])]);
});

test("writes the public model and the gateway's id into inserted responses", () => {
  const stream = dialects.response.stream(request, { ...names, ownId: true });
  stream.servedBy(serving);
  const begun = { ...completeResponse, id: "resp_theirs", model: "their-model", status: "in_progress" };
  const got = stream.translate(JSON.stringify({ type: "response.in_progress", response: begun }), undefined);
  expect(got).toContain("event: response.created");
  expect(got).not.toMatch(/their/);
});

test("ends a lean stream that a quota stops with the text so far", () => {
  const stream = dialects.response.stream(request, { ...names, mayBeStopped: true });
  stream.servedBy(serving);
  let text = stream.translate('{"type":"response.output_text.delta","delta":"Hel"}', undefined);
  text += stream.stopped({ stopped_by: "quota", quota: {} });
  const sent = [...text.matchAll(/^data: (.*)$/gm)].map(([, line = ""]) => JSON.parse(line) as Json);
  expect(sent.flatMap(eventFaults)).toEqual([]);
  expect(sent.map((event) => event["sequence_number"])).toEqual(sent.map((_, number) => number));
  expect(shortNames(sent)).toEqual([...begin, ...textEvents("Hel"), "incomplete"]);
  expect(outputOf(sent)).toMatchObject([{ id: "msg_own_0", status: "incomplete", content: [{ text: "Hel" }] }]);
});
