import { expect, test } from "bun:test";
import type { NewChat } from "../../domain/models/stored-chat.ts";
import { BoundedChats } from "./bounded-chats.ts";

const chat = (accountId: string): NewChat => ({
  ...{ id: "chatcmpl-1", accountId, environment: "dev", keyId: "key_1", appId: null, personId: null, model: "m" },
  ...{ createdAt: 0, expiresAt: 1, metadata: {}, parameters: {}, completion: {}, messages: [] },
});

test("frees the reserved space of chats that the store rejected, and stores later ones", async () => {
  const room = new Map<string, number>();
  const add = (accountId: string, size: number) => room.set(accountId, (room.get(accountId) ?? 0) + size);
  const stored: string[] = [];
  let isAway = true;
  const chats = new BoundedChats({
    chats: {
      insert: async (all) => {
        if (isAway) throw new Error("database is locked");
        stored.push(...all.map(({ accountId }) => accountId));
      },
    },
    room: {
      take: async (accountId, size) => {
        if (accountId === "full") return false;
        add(accountId, size);
        return true;
      },
      giveBack: (accountId, size) => void add(accountId, -size),
    },
    log: { info() {}, warn() {}, error() {} },
  });
  const all = [chat("a"), chat("full"), chat("b")];
  await expect(chats.insert(all)).rejects.toThrow("locked");
  expect([...room]).toEqual([
    ["a", 0],
    ["b", 0],
  ]);
  isAway = false;
  await chats.insert(all);
  expect(stored).toEqual(["a", "b"]);
  expect(room.get("a")).toBeGreaterThan(0);
});
