// Responses of lenient servers reach clients of Responses with all that OpenAI's SDKs read.
import { expect, test } from "bun:test";
import { responseFaults } from "../../../tests/support/agents/open-responses.ts";
import { completeResponse } from "../../../tests/support/complete-response.ts";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { Serving } from "../answer.ts";
import { dialects } from "../dialects.ts";

type Json = Record<string, unknown>;

const engine = { name: "e", redact: (text: string) => text, models: async () => [] } as never;
const serving: Serving = { model: { id: "m", context: undefined }, deployment: { engine } };
const names = { id: "resp_own", created: 1, ownId: false };
const request = decodedRequest({ input: "Hi", stream: true }, "response");

/** The events that a client gets. */
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

test.each([[[]], [null], [undefined]])("fills the output %j of the last event with the items that came", (output) => {
  expect(lastOf([created, done(0, message()), done(1, call()), completed({ output })])).toMatchObject({
    output: [message(), call()],
  });
  expect(lastOf([created, done(0, message("i")), done(0, message("j")), completed({ output })])).toMatchObject({
    output: [message("i"), message("j")],
  });
});

test("keeps one id for a response that its server does not begin", () => {
  const sent = sentFor([done(0, message()), completed({ output: [message()] })]);
  const ids = sent.flatMap(({ response: held }) => ((held as Json | undefined) ? [(held as Json)["id"]] : []));
  expect(ids).toEqual(["resp_own", "resp_own"]);
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

test("does not take a call for one without arguments that told them before", () => {
  const told = { type: "response.function_call_arguments.done", output_index: 0, item_id: "f", arguments: "[1]" };
  const begun = { type: "response.output_item.added", output_index: 0, item: call({ arguments: "" }) };
  const sent = sentFor([created, begun, told, done(0, call({ arguments: "" })), completed({ output: [] })]);
  expect(JSON.stringify(sent)).not.toContain("{}");
});

test.each([
  ["response.incomplete", undefined, "incomplete"],
  ["response.incomplete", "completed", "incomplete"],
  ["response.completed", "in_progress", "completed"],
  ["response.completed", undefined, "completed"],
])("tells by %s with the status %s that it is %s", (type, status, told) => {
  expect(lastOf([created, { type, response: response({ status, output: [message()] }) }])).toMatchObject({
    status: told,
  });
});

const whole = (told: Json, asked: Json = {}) => {
  const bytes = ByteSpan.of(Buffer.from(JSON.stringify(told)));
  const answer = dialects.response.readAnswer(bytes, decodedRequest({ input: "Hi", ...asked }, "response"), serving, {
    ...names,
    members: { store: false, previous_response_id: null, conversation: null },
  });
  return { text: answer.text, response: JSON.parse(answer.text) as Json, usage: answer.usage };
};

test("keeps the bytes of a response that is complete", () => {
  const told = { ...completeResponse, model: "m" };
  expect(whole(told).text).toBe(JSON.stringify(told));
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
  "gives the part %j of a message annotations",
  (part) => {
    const { response } = whole({ ...completeResponse, output: [{ ...message(), content: [part] }] });
    expect(response["output"]).toEqual([{ ...message(), content: [{ ...part, annotations: [] }] }]);
  },
);

test("gives calls without ids one for each place", () => {
  const bare = { type: "function_call", name: "look", arguments: "{}" };
  const { response } = whole({ ...completeResponse, output: [bare, bare] });
  expect(response["output"]).toEqual([
    { ...bare, id: "fc_own_0", call_id: "call_own_0", status: "completed" },
    { ...bare, id: "fc_own_1", call_id: "call_own_1", status: "completed" },
  ]);
});

test("takes null content, proofs and statuses out of a thought", () => {
  const thought = { id: "rs", type: "reasoning", content: null, encrypted_content: null, status: null };
  const { response } = whole({ ...completeResponse, output: [thought, message()] });
  expect(response["output"]).toEqual([{ id: "rs", type: "reasoning", summary: [] }, message()]);
});

test("marks the last item of a response that was cut off as incomplete", () => {
  const bare = { ...message(), status: undefined };
  const { response } = whole({ ...completeResponse, status: "incomplete", output: [bare, bare] });
  expect(response["output"]).toEqual([message(), { ...message(), status: "incomplete" }]);
});

test("adds to usage what the server left out, and counts the same", () => {
  const figures = { input_tokens: 30, output_tokens: 9, input_tokens_details: { cached_tokens: 4, audio_tokens: 1 } };
  const { response, usage } = whole({ ...completeResponse, usage: figures });
  expect(response["usage"]).toEqual({
    ...figures,
    total_tokens: 39,
    output_tokens_details: { reasoning_tokens: 0 },
  });
  expect(usage).toMatchObject({ promptTokens: 30, completionTokens: 9, estimated: false });
});

test("completes tools, text and reasoning that a server repeats as they came", () => {
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

test("passes the events of a strict server as they came", () => {
  const stream = dialects.response.stream(request, names);
  stream.servedBy(serving);
  const item = { type: "response.output_item.added", output_index: 0, item: call({ arguments: "" }) };
  for (const event of [created, item]) {
    const json = JSON.stringify(event);
    expect(stream.translate(json, undefined)).toBe(`event: ${event.type}\ndata: ${json}\n\n`);
  }
});
