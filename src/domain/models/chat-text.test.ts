// The search in a chat's text, which ignores the JSON around it.
import { expect, test } from "bun:test";
import { ChatTextSearch } from "./chat-text.ts";

const messages = JSON.stringify([
  { role: "system", content: "Be brief." },
  {
    role: "user",
    name: "harald",
    content: [
      { type: "text", text: 'Was ist das? "ÄPFEL"\n\tund \\ Öl' },
      { type: "image_url", image_url: { url: "data:image/png;base64,orchard" } },
    ],
  },
  { role: "assistant", content: null, tool_calls: [{ id: "call_1" }] },
]);
const completion = JSON.stringify({
  id: "chatcmpl-7",
  model: "aurora",
  choices: [
    { index: 0, message: { role: "assistant", content: "Fruit, said the Tree." }, finish_reason: "stop" },
    { index: 1, message: { role: "assistant", content: null, refusal: "I cannot say." } },
  ],
});

const says = (text: string) => new ChatTextSearch(text).isIn(messages, completion);

test("finds text of messages, parts, answers and refusals in any case", () => {
  const said = ["be BRIEF", "fruit, said", "TREE.", "i cannot", '"äpfel"', "\n\tund", "\\ öl", "Was ist das?", " "];
  expect(said.filter((text) => !says(text))).toEqual([]);
});

test("does not find names, roles, ids, image addresses or JSON syntax", () => {
  const around = [
    "role",
    "system",
    "harald",
    "orchard",
    "chatcmpl-7",
    "aurora",
    "stop",
    '","',
    "\\n",
    "null",
    "call_1",
  ];
  expect(around.filter(says)).toEqual([]);
});

test("does not find text across two messages", () => {
  expect(says("brief.was")).toBe(false);
});

test("finds no text in malformed messages", () => {
  for (const odd of [
    "{}",
    "null",
    "[null, 7, [], {}]",
    '{"choices": "fruit"}',
    '{"choices": [{"message": "fruit"}]}',
  ]) {
    expect(new ChatTextSearch("fruit").isIn(odd, odd)).toBe(false);
  }
  expect(new ChatTextSearch("fruit").isIn("", "")).toBe(false);
});
