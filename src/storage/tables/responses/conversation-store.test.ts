// Conversations in a real database: visibility, the order of items, and deletion.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import {
  conversation,
  day,
  idsOf,
  marked,
  message,
  now,
  owner,
  sealOf,
  stored,
  strangers,
} from "../../../../tests/support/stored-responses.ts";
import type { StoredItem } from "../../../domain/models/stored-response.ts";
import type { SealFor } from "../../../domain/seal.ts";
import { SqlConversationStore } from "./conversation-store.ts";
import { SqlResponseStore } from "./response-store.ts";

const large = 1_000_000;

let opened: TestDatabase;
let sealFor: SealFor;
let store: SqlConversationStore;
let responses: SqlResponseStore;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    sealFor = await sealOf(opened.db);
    store = new SqlConversationStore(opened.db, sealFor);
    responses = new SqlResponseStore(opened.db, sealFor);
  });

  afterEach(() => opened.close());

  const messages = (...ids: string[]): StoredItem[] => ids.map((id) => message(id, `text of ${id}`));

  async function ids(id = "conv_1", atSeconds = now): Promise<unknown> {
    const all = await store.all(owner, id, atSeconds, large);
    return "items" in all ? idsOf(all.items) : all;
  }

  test("finds a conversation as created, with its items in order", async () => {
    const made = conversation("conv_1", marked);
    await store.create(made, messages("b", "a"));
    expect(await store.find(owner, "conv_1", now)).toEqual(made);
    const all = await store.all(owner, "conv_1", now, large);
    const items = messages("b", "a");
    expect(all).toEqual({ items, size: items.reduce((sum, item) => sum + JSON.stringify(item).length, 0) });
    await store.create(conversation("conv_2"), []);
    expect(await store.all(owner, "conv_2", now, large)).toEqual({ items: [], size: 0 });
  });

  test("hides a conversation from any other account, environment, app, user or key maker", async () => {
    await store.create(conversation("conv_1", marked), messages("a"));
    const mine = { ...owner, ...marked };
    for (const other of strangers) {
      const stranger = { ...mine, ...other };
      const page = { after: undefined, limit: 10, order: "asc" } as const;
      expect(await store.find(stranger, "conv_1", now)).toBeUndefined();
      expect(await store.setMetadata(stranger, "conv_1", {}, now)).toBeUndefined();
      expect(await store.add(stranger, "conv_1", messages("x"), now + day, now)).toBeUndefined();
      expect(await store.list(stranger, "conv_1", page, now)).toBeUndefined();
      expect(await store.all(stranger, "conv_1", now, large)).toEqual({ missing: "conv_1" });
      expect(await store.findItem(stranger, "conv_1", "a", now)).toBeUndefined();
      expect(await store.deleteItem(stranger, "conv_1", "a", now)).toBe(false);
      expect(await store.delete(stranger, "conv_1", now)).toBe(false);
    }
    expect(await store.find(mine, "conv_1", now)).toEqual(conversation("conv_1", marked));
    expect(await ids()).toEqual(["a"]);
  });

  test("adds nothing to a conversation by a response of another account or environment", async () => {
    await store.create(conversation("conv_1"), []);
    await responses.insert([
      stored("a", { conversationId: "conv_1", accountId: "acct_2" }),
      stored("b", { conversationId: "conv_1", environment: "dev" }),
      stored("c", { conversationId: "never" }),
    ]);
    expect(await ids()).toEqual([]);
    expect(await responses.find(owner, "c", now)).toBeDefined();
  });

  test("replaces a conversation's metadata as a whole", async () => {
    await store.create(conversation("conv_1"), []);
    const changed = { ...conversation("conv_1"), metadata: { other: "label" } };
    expect(await store.setMetadata(owner, "conv_1", { other: "label" }, now)).toEqual(changed);
    expect(await store.find(owner, "conv_1", now)).toEqual(changed);
    expect(await store.setMetadata(owner, "never", {}, now)).toBeUndefined();
  });

  test("appends items to a conversation, and only extends its expiry", async () => {
    await store.create(conversation("conv_1"), messages("a"));
    expect(await store.add(owner, "conv_1", messages("b"), now + 3 * day, now)).toEqual(messages("b"));
    expect(await store.add(owner, "conv_1", messages("c"), now + 2 * day, now)).toEqual(messages("c"));
    expect(await ids()).toEqual(["a", "b", "c"]);
    expect(await store.find(owner, "conv_1", now)).toMatchObject({ expiresAt: now + 3 * day });
    expect(await store.add(owner, "never", messages("a"), now + day, now)).toBeUndefined();
  });

  test("gives an item with a used or missing id a new id in its conversation", async () => {
    await store.create(conversation("conv_1"), messages("a", "a"));
    const added = await store.add(owner, "conv_1", [...messages("a"), { type: "function_call" }], now + day, now);
    const all = await ids();
    expect(all).toEqual([
      "a",
      expect.stringMatching(/^msg_/),
      expect.stringMatching(/^msg_/),
      expect.stringMatching(/^fc_/),
    ]);
    expect(added && idsOf(added)).toEqual((all as unknown[]).slice(2));
    await responses.insert([stored("r", { conversationId: "conv_1", input: messages("a") })]);
    expect(await ids()).toHaveLength(6);
    expect(await responses.find(owner, "r", now)).toMatchObject({ input: messages("a") });
  });

  test("loses no item and repeats no position for many concurrent additions", async () => {
    await store.create(conversation("conv_1"), []);
    // Only one process uses a SQLite database.
    const other = databases.dialect === "sqlite" ? opened.db : await opened.openAgain();
    const others = [store, new SqlConversationStore(other, sealFor)];
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        others[i % 2]?.add(owner, "conv_1", messages(`${i}a`, `${i}b`), now + day, now),
      ),
    );
    const all = (await ids()) as string[];
    expect(all.toSorted()).toEqual(
      Array.from({ length: 20 }, (_, i) => [`${i}a`, `${i}b`])
        .flat()
        .toSorted(),
    );
    for (let i = 0; i < 20; i++) expect(all.indexOf(`${i}b`)).toBe(all.indexOf(`${i}a`) + 1);
  });

  test("lists all items in either order, each once", async () => {
    const names = Array.from({ length: 23 }, (_, i) => `m${i}`);
    await store.create(conversation("conv_1"), messages(...names));
    for (const order of ["asc", "desc"] as const) {
      const seen: unknown[] = [];
      for (let after: string | undefined; ; ) {
        const page = await store.list(owner, "conv_1", { after, limit: 5, order }, now);
        seen.push(...idsOf(page?.items ?? []));
        if (!page?.hasMore) break;
        after = String(seen.at(-1));
      }
      expect(seen).toEqual(order === "asc" ? names : names.toReversed());
    }
    const page = { after: "never", limit: 5, order: "asc" } as const;
    expect(await store.list(owner, "conv_1", page, now)).toBeUndefined();
    expect(await store.list(owner, "never", { ...page, after: undefined }, now)).toBeUndefined();
  });

  test("bounds a page of items to 16 million characters, except for a single item", async () => {
    const text = "x".repeat(6_000_000);
    await store.create(conversation("conv_1"), []);
    for (const id of ["a", "b", "c"]) await store.add(owner, "conv_1", [message(id, text)], now + day, now);
    const page = await store.list(owner, "conv_1", { after: undefined, limit: 20, order: "asc" }, now);
    expect([idsOf(page?.items ?? []), page?.hasMore]).toEqual([["a", "b"], true]);
    expect(await store.all(owner, "conv_1", now, 17_000_000)).toEqual({ tooLarge: true });
    expect(await store.all(owner, "conv_1", now, 19_000_000)).toMatchObject({ items: { length: 3 } });
  });

  test("finds and deletes an item by its id, and keeps the others in place", async () => {
    await store.create(conversation("conv_1"), messages("a", "b", "c"));
    expect(await store.findItem(owner, "conv_1", "b", now)).toEqual(message("b", "text of b"));
    expect(await store.deleteItem(owner, "conv_1", "b", now)).toBe(true);
    expect(await store.deleteItem(owner, "conv_1", "b", now)).toBe(false);
    expect(await store.findItem(owner, "conv_1", "b", now)).toBeUndefined();
    expect(await ids()).toEqual(["a", "c"]);
    await store.add(owner, "conv_1", messages("b"), now + day, now);
    expect(await ids()).toEqual(["a", "c", "b"]);
  });

  test("deletes a conversation with its items, but keeps those items in their responses", async () => {
    await store.create(conversation("conv_1"), messages("a"));
    await responses.insert([stored("r", { conversationId: "conv_1" })]);
    expect(await store.delete(owner, "conv_1", now)).toBe(true);
    expect(await store.delete(owner, "conv_1", now)).toBe(false);
    expect(await store.find(owner, "conv_1", now)).toBeUndefined();
    expect([...(await opened.db`SELECT * FROM conversation_items`)]).toEqual([]);
    expect(await responses.find(owner, "r", now)).toBeDefined();
    expect([...(await responses.items(owner, ["a", "r_in", "r_out"], now)).keys()].toSorted()).toEqual([
      "r_in",
      "r_out",
    ]);
  });

  test("hides an expired conversation before any sweep, and adds nothing to it", async () => {
    await store.create(conversation("conv_1"), messages("a"));
    const later = now + day;
    expect(await store.find(owner, "conv_1", later)).toBeUndefined();
    expect(await ids("conv_1", later)).toEqual({ missing: "conv_1" });
    expect(await store.findItem(owner, "conv_1", "a", later)).toBeUndefined();
    expect(await store.add(owner, "conv_1", messages("b"), later + day, later)).toBeUndefined();
    await responses.insert([stored("r", { conversationId: "conv_1", createdAt: later, expiresAt: later + day })]);
    expect(await store.find(owner, "conv_1", later)).toBeUndefined();
  });
});
