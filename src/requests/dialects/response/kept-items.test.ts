// Tests references to stored items, and the form of items in the store and for a model server.
import { describe, expect, test } from "bun:test";
import { itemsForEngine, namesKept, ownItems } from "./kept-items.ts";

test.each<[boolean, Record<string, unknown>]>([
  [false, { input: "Hello" }],
  [false, { input: [{ role: "user", content: "Hello" }], previous_response_id: null, conversation: null }],
  [false, { input: [{ type: "function_call", id: "fc_1", call_id: "c", name: "f", arguments: "{}" }] }],
  [true, { input: "Hello", previous_response_id: "resp_1" }],
  [true, { input: "Hello", conversation: "conv_1" }],
  [true, { input: "Hello", conversation: { id: "conv_1" } }],
  [true, { input: [{ type: "item_reference", id: "msg_1" }] }],
  [true, { input: [{ id: "msg_1" }] }],
  [true, { input: [{ type: null, role: null, id: "msg_1" }] }],
])("reports %p for references to stored items in %j", (names, body) => {
  expect(namesKept(body)).toBe(names);
});

describe("a request's own items", () => {
  test("stores items with ids of their type, and messages with their parts", () => {
    const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
    const items = ownItems([{ role: "user", content: "Hi" }, { role: "assistant", content: "Hello" }, call]);
    expect(items).toMatchObject([
      { type: "message", role: "user", status: "completed", content: [{ type: "input_text", text: "Hi" }] },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Hello", annotations: [] }] },
      call,
    ]);
    expect(items.map(({ id }) => String(id).replace(/_.*/, ""))).toEqual(["msg", "msg", "fc"]);
    expect(new Set(items.map(({ id }) => id)).size).toBe(3);
  });

  test("keeps the client's ids, and stores a text as a message", () => {
    expect(ownItems([{ id: "msg_mine", role: "user", content: [] }])[0]?.["id"]).toBe("msg_mine");
    expect(ownItems("Hi")).toMatchObject([{ type: "message", role: "user", content: [{ text: "Hi" }] }]);
  });
});

test("sends no foreign ids and no empty reasoning to a model server", () => {
  const said = { type: "message", id: "msg_2", role: "assistant", status: "completed", content: [] };
  const call = { type: "function_call", id: "fc_1", call_id: "c", name: "f", arguments: "{}" };
  const sealed = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "x" };
  const reported = { type: "reasoning", id: "rs_2", summary: [], content: [{ type: "reasoning_text", text: "Hm" }] };
  const summed = { type: "reasoning", id: "rs_3", summary: [{ type: "summary_text", text: "Hm" }] };
  const empty = { type: "reasoning", id: "rs_4", summary: [] };
  const output = { type: "function_call_output", id: "fco_1", status: "completed", call_id: "c", output: "4" };
  const asked = { type: "message", id: "msg_1", status: "completed", role: "user", content: [] };
  expect(itemsForEngine([asked, said, call, sealed, reported, summed, empty, output])).toEqual([
    { type: "message", role: "user", content: [] },
    said,
    call,
    sealed,
    reported,
    { type: "reasoning", summary: summed.summary },
    { type: "function_call_output", call_id: "c", output: "4" },
  ]);
});
