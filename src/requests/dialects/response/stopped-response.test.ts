// Tests the end of a server's own response in the middle: the text so far stays, and no client sees a partial call as a
// call.
import { expect, test } from "bun:test";
import { ObservedResponse } from "./stopped-response.ts";

const mark = { stopped_by: "quota", quota: {} } as const;
const usage = { promptTokens: 5, completionTokens: 9 };
const answer = { id: "resp_1", object: "response", status: "in_progress", model: "m", output: [] };

function stopped(...events: readonly Record<string, unknown>[]) {
  const observed = new ObservedResponse();
  for (const event of events) observed.see(event);
  const text = observed.stopped({ answer, events: 7 }, usage, mark);
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? "") as Record<string, unknown>);
}

const added = (output_index: number, item: object) => ({ type: "response.output_item.added", output_index, item });
const delta = (type: string, output_index: number, text: string, more: object = {}) => ({
  ...{ type: `response.${type}.delta`, output_index, delta: text },
  ...more,
});

test("ends a cut text like its item, after finished items, and keeps it in the response", () => {
  const thought = { id: "rs_1", type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }] };
  const events = stopped(
    added(0, { id: "rs_1", type: "reasoning", summary: [] }),
    { type: "response.output_item.done", output_index: 0, item: thought },
    added(1, { id: "msg_1", type: "message", status: "in_progress", role: "assistant", content: [] }),
    {
      ...{ type: "response.content_part.added", output_index: 1, content_index: 0 },
      part: { type: "output_text", text: "", annotations: [] },
    },
    delta("output_text", 1, "Hel", { content_index: 0 }),
    delta("output_text", 1, "lo", { content_index: 0 }),
  );
  const content = [{ type: "output_text", text: "Hello", annotations: [] }];
  const message = { id: "msg_1", type: "message", status: "incomplete", role: "assistant", content };
  const at = { item_id: "msg_1", output_index: 1, content_index: 0 };
  expect(events).toMatchObject([
    { type: "response.output_text.done", sequence_number: 7, ...at, text: "Hello" },
    { type: "response.content_part.done", sequence_number: 8, ...at, part: content[0] },
    { type: "response.output_item.done", sequence_number: 9, output_index: 1, item: message },
    {
      ...{ type: "response.incomplete", sequence_number: 10 },
      response: {
        ...{ id: "resp_1", status: "incomplete", incomplete_details: { reason: "max_output_tokens" }, headrace: mark },
        output: [thought, message],
        usage: { input_tokens: 5, output_tokens: 9, total_tokens: 14 },
      },
    },
  ]);
});

test("keeps a cut call only in the response, with its arguments so far", () => {
  const call = { id: "fc_1", type: "function_call", status: "in_progress", call_id: "c1", name: "rm", arguments: "" };
  const events = stopped(added(0, call), delta("function_call_arguments", 0, '{"path":'));
  const cut = { ...call, status: "incomplete", arguments: '{"path":' };
  expect(events).toMatchObject([{ type: "response.incomplete", response: { output: [cut] } }]);
});

test("skips invalid output indices", () => {
  const events = stopped(added(9, { id: "x" }), added(-1, { id: "y" }), delta("output_text", 3, "z"), {
    type: "response.x",
  });
  expect(events).toMatchObject([{ type: "response.incomplete", response: { output: [] } }]);
});
