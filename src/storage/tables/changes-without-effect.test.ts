// Changes without a limit, of objects that are missing or have ended: they take no turn in the writers' queue, which
// all accounts share.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import { now, owner, sealOf, stored } from "../../../tests/support/stored-responses.ts";
import type { Database } from "../sql/database.ts";
import { SqlBatchStore } from "./batches/batch-store.ts";
import { SqlChatStore } from "./chats/chat-store.ts";
import { SqlFileStore } from "./files/file-store.ts";
import { SqlBackgroundStore } from "./responses/background-store.ts";
import { SqlConversationStore } from "./responses/conversation-store.ts";
import { SqlResponseStore } from "./responses/response-store.ts";

onEachDatabase((databases) => {
  let opened: TestDatabase;
  let transactions = 0;
  let db: Database;
  const stores = async () => {
    const sealFor = await sealOf(opened.db);
    return {
      chats: new SqlChatStore(db),
      conversations: new SqlConversationStore(db, sealFor),
      responses: new SqlResponseStore(db, sealFor),
      background: new SqlBackgroundStore(db, sealFor),
      files: new SqlFileStore(db),
      batches: new SqlBatchStore(db),
    };
  };
  let all: Awaited<ReturnType<typeof stores>>;

  beforeAll(async () => {
    opened = await databases.open();
    db = new Proxy(opened.db, {
      apply: (target, self, args) => Reflect.apply(target, self, args),
      get(target, name) {
        if (name === "begin") transactions++;
        return Reflect.get(target, name) as unknown;
      },
    });
    all = await stores();
    await all.responses.insert([stored("ended"), stored("asked", { status: "in_progress", background: true })]);
    await all.background.requestCancel(owner, "asked", now);
  });
  afterAll(() => opened.close());

  test.each<[string, () => Promise<unknown>]>([
    ["a label of a chat", () => all.chats.setMetadata(owner, "none", {}, now)],
    ["the deletion of a chat", () => all.chats.delete(owner, "none", now)],
    ["a label of a conversation", () => all.conversations.setMetadata(owner, "none", {}, now)],
    ["the deletion of a conversation", () => all.conversations.delete(owner, "none", now)],
    ["the deletion of an item", () => all.conversations.deleteItem(owner, "none", "none", now)],
    ["the deletion of a response", () => all.responses.delete(owner, "none", now)],
    ["the cancellation of a response", () => all.background.requestCancel(owner, "none", now)],
    ["the deletion of a file", () => all.files.hide(owner, "none", now)],
    ["the cancellation of a batch", () => all.batches.cancel(owner, "none", now)],
  ])("begins no transaction for %s that does not exist", async (_, change) => {
    const before = transactions;
    expect(await change()).toBeFalsy();
    expect(transactions).toBe(before);
  });

  test.each(["ended", "asked"])("begins no transaction to cancel the response %p", async (id) => {
    const before = transactions;
    expect(await all.background.requestCancel(owner, id, now)).toMatchObject({ id });
    expect(transactions).toBe(before);
  });
});
