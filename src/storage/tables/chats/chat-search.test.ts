import { expect, test } from "bun:test";
import { searchChats } from "./chat-search.ts";

test("goes on past a chat that is deleted between the list and its text", async () => {
  const chats = new Map([["b", "canal"]]);
  const found = await searchChats(undefined, {
    ...{ limit: 10, maxSize: 1_000 },
    places: async (after) => (after ? [] : ["a", "b"].map((id) => ({ id, list_size: 1 }))),
    texts: async (id) => (chats.has(id) ? { messages: chats.get(id) ?? "", completion: "" } : undefined),
    isSought: (messages) => messages.includes("canal"),
  });
  expect(found).toEqual({ ids: ["b"], lastId: undefined });
});
