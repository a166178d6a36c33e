// Stored responses in a real database: visibility, chains, sealed content, and deletion.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import { until } from "../../../../tests/support/headrace.ts";
import { explained, explainedByPostgres } from "../../../../tests/support/query-plans.ts";
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
import { GatewayError } from "../../../base/errors.ts";
import type { StoredResponse } from "../../../domain/models/stored-response.ts";
import type { SealFor } from "../../../domain/seal.ts";
import type { Database } from "../../sql/database.ts";
import { SqlBackgroundStore } from "./background-store.ts";
import { addToConversation } from "./conversation-items.ts";
import { SqlConversationStore } from "./conversation-store.ts";
import { ResponseContent } from "./response-content.ts";
import { ownerIs } from "./response-rows.ts";
import { SqlResponseStore } from "./response-store.ts";

const large = 1_000_000;

let opened: TestDatabase;
let db: Database;
let sealFor: SealFor;
let store: SqlResponseStore;
let conversations: SqlConversationStore;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
    sealFor = await sealOf(db);
    store = new SqlResponseStore(db, sealFor);
    conversations = new SqlConversationStore(db, sealFor);
  });

  afterEach(() => opened.close());

  /** Makes responses of which each continues the one before. */
  const line = (...ids: string[]): StoredResponse[] =>
    ids.map((id, i) => stored(id, { previousId: i === 0 ? null : (ids[i - 1] ?? null) }));

  async function count(table: string): Promise<number> {
    const [row] = await db.unsafe(`SELECT count(*) AS n FROM ${table}`);
    return Number(row.n);
  }

  test("finds a response as stored, with all members", async () => {
    const one = stored("a", {
      ...marked,
      ...{ previousId: "b", conversationId: "conv_1", background: true, status: "incomplete", expiresAt: now + 5 },
    });
    await store.insert([one, stored("b")]);
    expect(await store.find(owner, "a", now)).toEqual(one);
    expect(await store.find(owner, "b", now)).toEqual(stored("b"));
    expect(await store.find(owner, "c", now)).toBeUndefined();
  });

  test("ignores a second response with the same id and its items", async () => {
    await store.insert([stored("a")]);
    await store.insert([stored("a", { model: "other", input: [message("x", "new")] }), stored("b")]);
    expect(await store.find(owner, "a", now)).toEqual(stored("a"));
    expect((await store.items(owner, ["x"], now)).size).toBe(0);
    expect(await store.find(owner, "b", now)).toEqual(stored("b"));
  });

  test("hides a response from any other account, environment, app, user or key maker", async () => {
    await store.insert([stored("a", marked)]);
    const mine = { ...owner, ...marked };
    expect(await store.find(mine, "a", now)).toBeDefined();
    for (const other of strangers) {
      const stranger = { ...mine, ...other };
      expect(await store.find(stranger, "a", now)).toBeUndefined();
      expect(await store.chain(stranger, "a", now, large)).toEqual({ missing: "a" });
      expect((await store.items(stranger, ["a_in", "a_out"], now)).size).toBe(0);
      expect(await store.delete(stranger, "a", now)).toBe(false);
    }
    expect(await store.find(mine, "a", now)).toBeDefined();
  });

  test("hides an account's own response from apps, members and keys made by a key", async () => {
    await store.insert([stored("a")]);
    for (const narrower of [{ appId: "app_1" }, { personId: "usr_1" }, { madeBy: "lim_1" }]) {
      expect(await store.find({ ...owner, ...narrower }, "a", now)).toBeUndefined();
    }
  });

  describe("a chain of responses", () => {
    test("returns a chain's items from the first response on, input before output, with their size", async () => {
      const all = line("a", "b", "c");
      await store.insert(all);
      const chain = await store.chain(owner, "c", now, large);
      const items = all.flatMap(({ input, response }) => [...input, ...(response["output"] as typeof input)]);
      const size = items.reduce((sum, item) => sum + JSON.stringify(item).length, 0);
      expect(chain).toEqual({ items, size });
      expect(await store.chain(owner, "b", now, large)).toMatchObject({ items: items.slice(0, 4) });
    });

    test("reports a chain above the size limit as too large, and reads one at the limit", async () => {
      await store.insert(line("a", "b", "c"));
      const whole = await store.chain(owner, "c", now, large);
      const size = "size" in whole ? whole.size : 0;
      expect(await store.chain(owner, "c", now, size)).toEqual(whole);
      expect(await store.chain(owner, "c", now, size - 1)).toEqual({ tooLarge: true });
      expect(await store.chain(owner, "c", now, 10)).toEqual({ tooLarge: true });
    });

    test("names the missing, deleted, expired or foreign response of a chain", async () => {
      await store.insert(line("a", "b", "c"));
      await store.insert([
        stored("of-nobody", { previousId: "never" }),
        stored("old", { expiresAt: now }),
        stored("of-old", { previousId: "old" }),
        stored("others", { accountId: "acct_2" }),
        stored("of-others", { previousId: "others" }),
      ]);
      expect(await store.chain(owner, "never", now, large)).toEqual({ missing: "never" });
      expect(await store.chain(owner, "of-nobody", now, large)).toEqual({ missing: "never" });
      expect(await store.chain(owner, "of-old", now, large)).toEqual({ missing: "old" });
      expect(await store.chain(owner, "of-others", now, large)).toEqual({ missing: "others" });
      await store.delete(owner, "b", now);
      expect(await store.chain(owner, "c", now, large)).toEqual({ missing: "b" });
    });

    test("continues a failed or cancelled response, but not a running one", async () => {
      await store.insert([
        stored("a", { status: "failed" }),
        stored("b", { status: "cancelled", previousId: "a" }),
        stored("c", { status: "queued", previousId: "b", background: true }),
        stored("d", { status: "in_progress", previousId: "b", background: true }),
        stored("e", { previousId: "d" }),
      ]);
      expect(await store.chain(owner, "b", now, large)).toMatchObject({ items: { length: 4 } });
      expect(await store.chain(owner, "c", now, large)).toEqual({ unfinished: "c" });
      expect(await store.chain(owner, "e", now, large)).toEqual({ unfinished: "d" });
    });

    test("reports a circular chain as too large", async () => {
      await store.insert([
        stored("a", { previousId: "b", input: [], response: {} }),
        stored("b", { previousId: "a", input: [], response: {} }),
      ]);
      expect(await store.chain(owner, "a", now, large)).toEqual({ tooLarge: true });
    });

    test("reads a chain of thousands of responses in order, with other work in between", async () => {
      const ids = Array.from({ length: 2_500 }, (_, i) => `r${i}`);
      const all = line(...ids);
      for (let i = 0; i < all.length; i += 500) await store.insert(all.slice(i, i + 500));
      let turns = 0;
      let next = setImmediate(function turn() {
        turns += 1;
        next = setImmediate(turn);
      });
      const chain = await store.chain(owner, "r2499", now, 100_000_000);
      clearImmediate(next);
      expect("items" in chain && idsOf(chain.items)).toEqual(ids.flatMap((id) => [`${id}_in`, `${id}_out`]));
      expect(turns).toBeGreaterThan(10);
    });

    test("begins a chain with the conversation before its first response", async () => {
      await conversations.create(conversation("conv_1"), [message("m1", "first")]);
      await store.insert([stored("a", { conversationId: "conv_1" })]);
      await conversations.add(owner, "conv_1", [message("m2", "later")], now + day, now);
      await store.insert([stored("b", { previousId: "a" })]);
      const chain = await store.chain(owner, "b", now, large);
      expect("items" in chain && idsOf(chain.items)).toEqual(["m1", "a_in", "a_out", "b_in", "b_out"]);
      await conversations.delete(owner, "conv_1", now);
      expect(await store.chain(owner, "b", now, large)).toEqual({ missing: "conv_1" });
    });
  });

  describe("stored items by id", () => {
    test("finds items by id in input and output, and leaves out missing ones", async () => {
      await store.insert([stored("a"), stored("b")]);
      const found = await store.items(owner, ["b_out", "a_in", "nowhere", "a_in"], now);
      expect([...found.keys()].toSorted()).toEqual(["a_in", "b_out"]);
      expect(found.get("a_in")).toEqual(message("a_in", "Hi"));
      expect(found.get("b_out")).toEqual(message("b_out", "Hello", "assistant"));
    });

    test("indexes only items with an id", async () => {
      const input = [message("msg_1", "Hi"), { type: "message", role: "user", content: "Hi" }];
      await store.insert([stored("a", { input })]);
      expect(await count("stored_response_items")).toBe(2);
    });

    test("gives each of two owners their own item of the same id", async () => {
      await store.insert([
        stored("a", { input: [message("msg_1", "mine")] }),
        stored("b", { accountId: "acct_2", input: [message("msg_1", "theirs")] }),
        stored("c", { ...marked, createdAt: now + 1, input: [message("msg_1", "the member's")] }),
        stored("d", { personId: "usr_2", createdAt: now + 2, input: [message("msg_1", "another member's")] }),
      ]);
      const textFor = async (of: Partial<typeof owner>) =>
        JSON.stringify((await store.items({ ...owner, ...of }, ["msg_1"], now)).get("msg_1"));
      expect(await textFor({ accountId: "acct_2" })).toContain("theirs");
      expect(await textFor(marked)).toContain("the member's");
      expect(await textFor({ personId: "usr_2" })).toContain("another member's");
    });

    test("returns the newest item of an id, and the previous one once the newest is deleted", async () => {
      await store.insert([
        stored("new", { createdAt: now + 1, input: [message("msg_1", "new")] }),
        stored("old", { createdAt: now, input: [message("msg_1", "old"), message("msg_2", "beside")] }),
      ]);
      const texts = async (...ids: string[]) => JSON.stringify([...(await store.items(owner, ids, now)).values()]);
      expect(await texts("msg_1")).toContain("new");
      expect(await texts("msg_1")).not.toContain("old");
      // If a caller names several items, those of the response with the last item are meant.
      expect(await texts("msg_1", "msg_2")).toContain("old");
      const many = ["msg_1", ...Array.from({ length: 60 }, (_, i) => `none_${i}`), "msg_2"];
      expect(await texts(...many)).toContain("old");
      expect(await texts("msg_2", "msg_1")).toContain("new");
      await store.delete(owner, "new", now);
      expect(await texts("msg_1")).toContain("old");
    });

    test("prefers the item of the same key among many of one id, however new the others are", async () => {
      const theirs = Array.from({ length: 5 }, (_, i) => stored(`r${i}`, { createdAt: now + i, keyId: "key_2" }));
      const input = [message("msg_1", "theirs")];
      await store.insert([stored("mine", { input: [message("msg_1", "mine")] })]);
      await store.insert(theirs.map((one) => ({ ...one, input })));
      const text = async (keyId?: string) =>
        JSON.stringify((await store.items({ ...owner, ...(keyId ? { keyId } : {}) }, ["msg_1"], now)).get("msg_1"));
      expect(await text("key_1")).toContain("mine");
      expect(await text("key_2")).toContain("theirs");
      expect(await text("key_3")).toContain("theirs");
      expect(await text()).toContain("theirs");
    });

    test("finds conversation items by id for those that may see the conversation", async () => {
      await conversations.create(conversation("conv_1", marked), [message("msg_1", "here")]);
      const mine = { ...owner, ...marked };
      expect((await store.items(mine, ["msg_1"], now)).get("msg_1")).toEqual(message("msg_1", "here"));
      for (const other of strangers) {
        expect((await store.items({ ...mine, ...other }, ["msg_1"], now)).size).toBe(0);
      }
      expect((await store.items(mine, ["msg_1"], now + day)).size).toBe(0);
    });

    test("stores and finds very many items of a response", async () => {
      const input = Array.from({ length: 5_000 }, (_, i) => message(`m${i}`, "x"));
      await store.insert([stored("a", { input })]);
      const ids = idsOf(input).map(String);
      expect((await store.items(owner, ids.slice(0, 120), now)).size).toBe(120);
      expect((await store.items(owner, ["m4999"], now)).size).toBe(1);
    });
  });

  describe("room for stored content", () => {
    /** Makes a `mayRead` that refuses after this many characters. */
    const upTo = (most: number) => {
      const asked: number[] = [];
      return {
        asked,
        mayRead: (size: number) => {
          asked.push(size);
          return asked.reduce((sum, one) => sum + one, 0) <= most;
        },
      };
    };

    test("reads a chain and its conversation only after each size was admitted", async () => {
      await conversations.create(conversation("conv_1"), [message("a", "x".repeat(1_000))]);
      await store.insert([stored("root", { conversationId: "conv_1" }), stored("next", { previousId: "root" })]);
      const room = upTo(large);
      const chain = await store.chain(owner, "next", now, large, room.mayRead);
      expect(room.asked).toHaveLength(2);
      expect(chain).toMatchObject({ size: (room.asked[0] ?? 0) + (room.asked[1] ?? 0) });
      for (const most of [0, 1_000]) {
        const { asked, mayRead } = upTo(most);
        expect(await store.chain(owner, "next", now, large, mayRead)).toEqual({ tooLarge: true });
        expect(asked).toEqual(room.asked.slice(0, most === 0 ? 1 : 2));
      }
      const { mayRead } = upTo(0);
      expect(await conversations.all(owner, "conv_1", now, large, mayRead)).toEqual({ tooLarge: true });
    });

    test("reads items by id only as far as room was admitted", async () => {
      await conversations.create(conversation("conv_1"), [message("of_conversation", "x")]);
      await store.insert(["a", "b", "c"].map((id) => stored(id)));
      const ids = ["a_in", "b_in", "c_in", "of_conversation"];
      const { asked, mayRead } = upTo(250);
      expect((await store.items(owner, ids, now, mayRead)).size).toBe(2);
      expect(asked).toHaveLength(3);
      expect((await store.items(owner, ids, now, upTo(large).mayRead)).size).toBe(4);
    });
  });

  test("lets other work run while very many items are written, deleted or swept", async () => {
    const input = Array.from({ length: 2_000 }, (_, i) => message(`m${i}`, "x"));
    await conversations.create(conversation("conv_1"), []);
    let turns = 0;
    let isOver = false;
    const counting = (async () => {
      for (; !isOver; turns++) await new Promise(setImmediate);
    })();
    const turnsOf = async (work: () => Promise<unknown>) => {
      const before = turns;
      await work();
      return turns - before;
    };
    expect(await turnsOf(() => store.insert([stored("a", { input })]))).toBeGreaterThan(5);
    expect(await turnsOf(() => store.insert([stored("b", { input, conversationId: "conv_1" })]))).toBeGreaterThan(10);
    expect(await turnsOf(() => conversations.delete(owner, "conv_1", now))).toBeGreaterThan(3);
    isOver = true;
    await counting;
    const rounds: number[] = [];
    for (let deleted = 1; deleted > 0; rounds.push(deleted)) deleted = await store.deleteExpired(now + day, 20);
    expect(rounds).toEqual([...Array(8).fill(20), 2, 0]);
    expect([await count("stored_responses"), await count("stored_response_items")]).toEqual([0, 0]);
  });

  test("finds the last of very many items of a response by id", async () => {
    const input = Array.from({ length: 10_500 }, (_, i) => message(`m${i}`, "x"));
    await store.insert([stored("a", { input })]);
    expect((await store.items(owner, ["m0"], now)).size).toBe(0);
    expect([...(await store.items(owner, ["m10499", "a_out"], now)).keys()]).toEqual(["m10499", "a_out"]);
    expect(await store.chain(owner, "a", now, 10_000_000)).toMatchObject({ items: { length: 10_501 } });
  });

  describe("deletion of responses", () => {
    test("deletes a response at once and for good, even for a late writer", async () => {
      await store.insert(line("a", "b"));
      expect(await store.delete(owner, "a", now)).toBe(true);
      expect(await store.find(owner, "a", now)).toBeUndefined();
      expect((await store.items(owner, ["a_in"], now)).size).toBe(0);
      expect(await store.chain(owner, "b", now, large)).toEqual({ missing: "a" });
      expect(await store.delete(owner, "a", now)).toBe(false);
      await store.insert([stored("a")]);
      expect(await store.find(owner, "a", now)).toBeUndefined();
    });

    test("erases a deleted response's sealed content, events and index, and no other's", async () => {
      const background = new SqlBackgroundStore(db, sealFor);
      await store.insert([stored("a", { status: "in_progress", background: true }), stored("b")]);
      const response = { output: [] };
      await background.progress("a", { status: "in_progress", response, events: { first: 0, events: ["{}"] } }, now);
      await store.delete(owner, "a", now);
      const [row] = await db`SELECT input, response FROM stored_responses WHERE id = 'a'`;
      expect(row).toEqual({ input: "", response: "" });
      expect(await count("response_events")).toBe(0);
      expect(await count("stored_response_items")).toBe(2);
      expect(await store.find(owner, "b", now)).toEqual(stored("b"));
    });
  });

  describe("expiry of responses", () => {
    test("hides an expired response before any sweep", async () => {
      await store.insert([stored("a", { expiresAt: now + 1 })]);
      expect(await store.find(owner, "a", now)).toBeDefined();
      expect(await store.find(owner, "a", now + 1)).toBeUndefined();
      expect((await store.items(owner, ["a_in"], now + 1)).size).toBe(0);
      expect(await store.delete(owner, "a", now + 1)).toBe(false);
    });

    test("sweeps expired responses with their items up to the limit, and returns their number", async () => {
      const old = Array.from({ length: 5 }, (_, i) => stored(`old${i}`, { expiresAt: now }));
      await store.insert([...old, stored("new")]);
      expect(await store.deleteExpired(now, 3)).toBe(3);
      expect(await store.deleteExpired(now, 3)).toBe(2);
      expect(await store.deleteExpired(now, 3)).toBe(0);
      expect(await count("stored_responses")).toBe(1);
      expect(await count("stored_response_items")).toBe(2);
    });

    test("sweeps expired conversations with all of their items, a few at a time", async () => {
      const items = Array.from({ length: 7 }, (_, i) => message(`m${i}`, "x"));
      await conversations.create(conversation("old", { expiresAt: now }), []);
      await conversations.create(conversation("long"), items);
      await conversations.create(conversation("new", { expiresAt: now + 2 * day }), items);
      const later = now + day;
      const rounds: number[] = [];
      for (let deleted = 1; deleted > 0; rounds.push(deleted)) deleted = await store.deleteExpired(later, 3);
      expect(rounds).toEqual([3, 3, 3, 0]);
      expect(await count("conversations")).toBe(1);
      expect(await count("conversation_items")).toBe(7);
    });

    test("deletes the events of a response ten minutes after its end, and keeps the response", async () => {
      const background = new SqlBackgroundStore(db, sealFor);
      await store.insert([stored("a", { status: "in_progress", background: true })]);
      const response = { output: [] };
      for (let first = 0; first < 5; first++) {
        await background.progress("a", { status: "in_progress", response, events: { first, events: ["{}"] } }, now);
      }
      expect(await store.deleteExpired(now + 3_600, 3)).toBe(0);
      await background.end("a", { status: "completed", response, events: { first: 5, events: ["{}"] } }, now);
      expect(await store.deleteExpired(now + 599, 3)).toBe(0);
      expect(await store.deleteExpired(now + 600, 3)).toBe(3);
      expect(await store.deleteExpired(now + 600, 4)).toBe(3);
      expect(await background.events("a", -1, large)).toEqual([]);
      expect(await store.find(owner, "a", now)).toBeDefined();
    });
  });

  databases.only("postgres", "keeps a conversation that grows while a sweep deletes it", async () => {
    await conversations.create(conversation("conv_1", { expiresAt: now + 10 }), []);
    const other = await opened.openAgain();
    const isAdded = Promise.withResolvers<void>();
    const isSweeping = Promise.withResolvers<void>();
    const adding = other.begin(async (tx) => {
      const added = { conversationId: "conv_1", items: [message("a", "x")], responseId: null };
      const times = { expiresAt: now + day, nowSeconds: now };
      await addToConversation(tx, new ResponseContent(sealFor), { ...added, ...times }, ownerIs(tx, owner));
      isAdded.resolve();
      await isSweeping.promise;
    });
    await isAdded.promise;
    const sweeping = store.deleteExpired(now + 20, 20);
    await until(async () => {
      const [row] = await db`SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'`;
      return Number(row.n) > 0;
    }, "the sweep waits for who adds");
    isSweeping.resolve();
    await Promise.all([adding, sweeping]);
    expect(await conversations.all(owner, "conv_1", now + 20, large)).toMatchObject({ items: { length: 1 } });
  });

  describe("stored content at rest", () => {
    test("stores no readable text of responses, item ids, events or conversations in any row", async () => {
      const background = new SqlBackgroundStore(db, sealFor);
      const secret = message("CANARY-ID", "CANARY");
      await conversations.create(conversation("conv_1", { metadata: { CANARY: "CANARY" } }), [secret]);
      await store.insert([
        stored("a", { input: [secret], response: { output: [secret], metadata: { k: "CANARY" } } }),
        stored("b", { conversationId: "conv_1", input: [secret] }),
        stored("c", { status: "in_progress" }),
      ]);
      const events = { first: 0, events: ["CANARY"] };
      await background.end("c", { status: "completed", response: { output: [secret] }, events }, now);
      for (const table of [
        ...["stored_responses", "stored_response_items", "response_events", "conversations", "conversation_items"],
        "installation",
      ]) {
        const rows = [...(await db.unsafe(`SELECT * FROM ${table}`))];
        expect(rows).not.toBeEmpty();
        expect(JSON.stringify(rows)).not.toContain("CANARY");
      }
    });

    test("does not decrypt content that was moved into another row or column", async () => {
      await store.insert([stored("a"), stored("b")]);
      await db`UPDATE stored_responses SET response = (SELECT response FROM stored_responses WHERE id = 'b') WHERE id = 'a'`;
      expect(await store.find(owner, "a", now)).toBeUndefined();
      expect(await store.chain(owner, "a", now, large)).toEqual({ missing: "a" });
      await db`UPDATE stored_responses SET input = response WHERE id = 'b'`;
      expect(await store.find(owner, "b", now)).toBeUndefined();
    });

    // Only one process uses a SQLite database.
    databases.only("postgres", "gives several concurrent first starts the same encryption key", async () => {
      await db`DELETE FROM installation WHERE name = 'content_key'`;
      const others = await Promise.all(Array.from({ length: 3 }, () => opened.openAgain()));
      const seals = await Promise.all([db, ...others].map(sealOf));
      const sealed = seals.map((one) => one("here").seal("text"));
      for (const one of seals) expect(sealed.map((text) => one("here").open(text))).toEqual(Array(4).fill("text"));
      expect(seals[0]?.("there").open(sealed[0] ?? "")).toBeUndefined();
    });
  });

  test("reads by an index for every owner and amount", async () => {
    const some = Array.from({ length: 200 }, (_, i) => stored(`r${i}`, { ...marked, conversationId: "conv_1" }));
    await conversations.create(conversation("conv_1", marked), []);
    await store.insert(some);
    if (databases.dialect === "postgres") await db.unsafe("ANALYZE");
    const plans = new Set<string>();
    const seen = databases.dialect === "sqlite" ? explained(db, plans) : explainedByPostgres(db, plans);
    const mine = { ...owner, ...marked };
    const [reading, talking] = [new SqlResponseStore(seen, sealFor), new SqlConversationStore(seen, sealFor)];
    expect(await reading.find(mine, "r7", now)).toBeDefined();
    expect((await reading.items(mine, ["r7_in", "r8_in", "none"], now)).size).toBe(2);
    expect(await talking.findItem(mine, "conv_1", "r7_in", now)).toBeDefined();
    const page = { after: "r7_in", limit: 2, order: "asc" } as const;
    expect((await talking.list(mine, "conv_1", page, now))?.items).toHaveLength(2);
    await new SqlBackgroundStore(seen, sealFor).events("r7", -1, large);
    await new SqlBackgroundStore(seen, sealFor).abandoned(now, now, 10);
    // The test has one conversation and no event, so PostgreSQL scans these two tables instead of using an index.
    const scans = [...plans].filter((step) => /^SCAN (?!one)|^all of (?!conversations$|response_events$)/.test(step));
    expect(scans).toEqual([]);
  });

  test("answers 503 for a failing database of responses without quoting content", async () => {
    await db.unsafe("ALTER TABLE stored_responses RENAME TO gone");
    const calls = [
      () => store.insert([stored("CANARY")]),
      () => store.find(owner, "CANARY", now),
      () => store.chain(owner, "CANARY", now, large),
      () => store.items(owner, ["CANARY"], now),
      () => store.delete(owner, "CANARY", now),
      () => store.deleteExpired(now, 1),
    ];
    for (const call of calls) {
      const error: unknown = await call().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(GatewayError);
      const { code, message: text, detail } = error as GatewayError;
      expect(code).toBe("service_unavailable");
      expect(text).toStartWith("Stored responses cannot be reached at the moment.");
      expect(`${text} ${detail}`).not.toContain("CANARY");
      expect(detail).toBe(`database: ${databases.missingTable}`);
    }
    await db.unsafe("ALTER TABLE gone RENAME TO stored_responses");
  });
});
