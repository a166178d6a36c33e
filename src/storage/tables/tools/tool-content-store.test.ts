// Contents of tool calls in the database: visible only to their owner, until they expire, and sealed for their own row.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import type { ChatOwner } from "../../../domain/models/stored-chat.ts";
import type { SealFor } from "../../../domain/seal.ts";
import type { ToolContent } from "../../../domain/tools/tool-content.ts";
import { SqlToolContents } from "./tool-content-store.ts";

/** Makes a seal that does not open a text sealed for another place. */
const sealFor: SealFor = (place) => ({
  seal: (text) => Buffer.from(JSON.stringify([place, text])).toString("base64url"),
  open(sealed) {
    const [sealedFor, text] = JSON.parse(Buffer.from(sealed, "base64url").toString()) as [string, string];
    return sealedFor === place ? text : undefined;
  },
});

onEachDatabase((databases) => {
  let opened: TestDatabase;
  let store: SqlToolContents;

  beforeEach(async () => {
    opened = await databases.open();
    store = new SqlToolContents(opened.db, sealFor);
  });
  afterEach(() => opened.close());

  const content = (requestId: string, changes: Partial<ToolContent> = {}): ToolContent => ({
    ...{ requestId, accountId: "acct_1", environment: "live", appId: null, personId: null, expiresAt: 100 },
    ...{ arguments: "{}", result: `{"of":"${requestId}\\u0000"}` },
    ...changes,
  });
  const owner = (changes: Partial<ChatOwner> = {}): ChatOwner => ({
    ...{ accountId: "acct_1", environment: "live", appId: null, personId: null },
    ...changes,
  });

  test("finds the content of a tool call for its owner until it expires, and ignores a second write", async () => {
    await store.insert([content("one"), content("two", { appId: "app_1", personId: "usr_1" })]);
    await store.insert([content("one", { result: "changed" })]);
    expect(await store.find(owner(), "one", 99)).toEqual({ arguments: "{}", result: content("one").result });
    expect(await store.find(owner(), "two", 99)).toBeDefined();
    expect(await store.find(owner({ appId: "app_1", personId: "usr_1" }), "two", 99)).toBeDefined();
    for (const other of [
      owner({ accountId: "acct_2" }),
      owner({ environment: "test" }),
      owner({ appId: "app_2" }),
      owner({ personId: "usr_2" }),
    ]) {
      expect(await store.find(other, "two", 99)).toBeUndefined();
    }
    expect(await store.find(owner(), "one", 100)).toBeUndefined();
  });

  test("deletes expired tool content a few at a time, oldest first", async () => {
    await store.insert([content("a", { expiresAt: 1 }), content("b", { expiresAt: 2 }), content("c")]);
    expect(await store.deleteExpired(50, 1)).toBe(1);
    expect(await store.find(owner(), "a", 0)).toBeUndefined();
    expect([await store.deleteExpired(50, 10), await store.deleteExpired(50, 10)]).toEqual([1, 0]);
    expect(await store.find(owner(), "c", 50)).toBeDefined();
  });

  test("does not return tool content that was moved to another call's row", async () => {
    await store.insert([content("one"), content("two")]);
    await opened.db`UPDATE tool_contents SET content = (SELECT content FROM tool_contents WHERE request_id = 'one')`;
    expect(await store.find(owner(), "one", 0)).toBeDefined();
    expect(await store.find(owner(), "two", 0)).toBeUndefined();
  });
});
