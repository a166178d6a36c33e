import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import { explained } from "../../../../tests/support/query-plans.ts";
import type { ChatOwner } from "../../../domain/models/stored-chat.ts";
import { SqlChatStore } from "../chats/chat-store.ts";
import { SqlStoredSizes } from "./stored-sizes.ts";

const now = 1_800_000_000;
const owner: ChatOwner = { accountId: "acct_1", environment: "live", appId: null, personId: null };
let opened: TestDatabase;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
  });
  afterEach(async () => {
    await opened.close();
  });

  test("sums an account's chats, and frees a deleted chat's space except for its row", async () => {
    const chats = new SqlChatStore(opened.db);
    const sizes = new SqlStoredSizes(opened.db);
    const chat = (id: string, accountId: string) => ({
      ...{ ...owner, id, accountId, keyId: "key_1", model: "m", createdAt: now, expiresAt: now + 86_400 },
      ...{ metadata: {}, parameters: {}, completion: { id }, messages: ["x".repeat(10_000)] },
    });
    await chats.insert([chat("a", "acct_1"), chat("b", "acct_1"), chat("c", "acct_2")]);
    expect(await sizes.sizeOf("acct_1")).toBeWithin(20_000, 22_000);
    expect(await sizes.sizeOf("acct_2")).toBeWithin(10_000, 11_000);
    expect(await sizes.sizeOf("acct_3")).toBe(0);
    await chats.delete(owner, "a", now);
    expect(await sizes.sizeOf("acct_1")).toBeWithin(10_000, 12_000);
  });

  databases.only("sqlite", "reads the sums from indexes alone, and no content", async () => {
    const plans = new Set<string>();
    await new SqlStoredSizes(explained(opened.db, plans)).sizeOf("acct_1");
    for (const table of ["stored_chats", "stored_responses", "conversation_items"]) {
      expect([...plans].join("\n")).toContain(`${table} USING COVERING INDEX ${table}_by_size`);
    }
  });
});
