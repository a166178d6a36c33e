// What counts as said in a chat, and what is only the JSON around it.
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

test("texts of messages, of their parts, of every answer and of refusals are found in whatever case", () => {
  const said = ["be BRIEF", "fruit, said", "TREE.", "i cannot", '"äpfel"', "\n\tund", "\\ öl", "Was ist das?", " "];
  expect(said.filter((text) => !says(text))).toEqual([]);
});

test("names, roles, ids, addresses of images and the JSON itself are none of it", () => {
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

test("a text does not reach over the end of one message into the next", () => {
  expect(says("brief.was")).toBe(false);
});

test("what an engine or a client made up in place of messages says nothing", () => {
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
