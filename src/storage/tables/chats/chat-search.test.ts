import { expect, test } from "bun:test";
import { searchChats } from "./chat-search.ts";

test("continues a chat search past a chat that is deleted during the search", async () => {
  const chats = new Map([["b", "canal"]]);
  const found = await searchChats(undefined, {
    ...{ limit: 10, maxSize: 1_000 },
    positions: async (after) => (after ? [] : ["a", "b"].map((id) => ({ id, list_size: 1 }))),
    texts: async (id) => (chats.has(id) ? { messages: chats.get(id) ?? "", completion: "" } : undefined),
    isSought: (messages) => messages.includes("canal"),
  });
  expect(found).toEqual({ ids: ["b"], lastId: undefined });
});

test("ends a page of a chat search after eight million scanned characters", async () => {
  const long = "x".repeat(4_000_000);
  const page = async (second: string) =>
    searchChats(undefined, {
      ...{ limit: 10, maxSize: 1_000 },
      positions: async () => ["a", "b", "c"].map((id) => ({ id, list_size: 1 })),
      texts: async (id) => ({ messages: id === "a" ? long : id === "b" ? second : "canal", completion: "" }),
      isSought: (messages) => messages === "canal",
    });
  expect(await page(long)).toEqual({ ids: ["c"], lastId: undefined });
  expect(await page(`${long}x`)).toEqual({ ids: [], lastId: "b" });
});
