// Stored chats in a real database: visibility, order and deletion.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import { explained } from "../../../../tests/support/query-plans.ts";
import { GatewayError } from "../../../base/errors.ts";
import type { ChatFilter, ChatOwner, NewChat } from "../../../domain/models/stored-chat.ts";
import type { Database } from "../../sql/database.ts";
import { SqlChatStore } from "./chat-store.ts";

const now = 1_800_000_000;
const owner: ChatOwner = { accountId: "acct_1", environment: "live", appId: null, personId: null };

let opened: TestDatabase;
let db: Database;
let store: SqlChatStore;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
    store = new SqlChatStore(db);
  });

  afterEach(async () => {
    await opened.close();
  });

  function chat(id: string, more: Partial<NewChat> = {}): NewChat {
    return {
      ...owner,
      id,
      keyId: "key_1",
      model: "m",
      createdAt: now,
      expiresAt: now + 86_400,
      metadata: {},
      parameters: { temperature: 0.5 },
      completion: { id, object: "chat.completion", choices: [{ index: 0, message: { content: "Hello" } }] },
      messages: [{ role: "user", content: "Hi" }],
      ...more,
    };
  }

  async function ids(
    filter: ChatFilter = {},
    page: { after?: string; limit?: number; order?: "asc" | "desc" } = {},
    of: ChatOwner = owner,
  ): Promise<string[] | undefined> {
    const found = await store.list(of, filter, { after: undefined, limit: 100, order: "asc", ...page }, now);
    return found?.chats.map(({ id }) => id);
  }

  test("reads back a chat as stored, with its messages apart", async () => {
    const stored = chat("a", {
      appId: "app_1",
      metadata: { topic: "weather", __proto__x: "1" },
      completion: { id: "a", content: 'ünïcødé \u0000 \ud800 "quoted"' },
    });
    await store.insert([stored]);
    const { messages, ...rest } = stored;
    expect(await store.find(owner, "a", now)).toEqual(rest);
    expect(await store.findMessages(owner, "a", now)).toEqual([...messages]);
    expect([await store.has(owner, "a", now), await store.has(owner, "b", now)]).toEqual([true, false]);
  });

  test("ignores a second chat with the same id, and keeps the chat and its changed labels", async () => {
    await store.insert([chat("a", { metadata: { step: "1" } })]);
    await store.setMetadata(owner, "a", { step: "2" }, now);
    await store.insert([chat("a", { metadata: { step: "1" }, model: "other" }), chat("b")]);
    expect(await store.find(owner, "a", now)).toMatchObject({ model: "m", metadata: { step: "2" } });
    expect(await ids({ metadata: { step: "1" } })).toEqual([]);
    expect(await ids()).toEqual(["a", "b"]);
  });

  describe("ownership of chats", () => {
    const app: ChatOwner = { ...owner, appId: "app_1" };
    const strangers: ChatOwner[] = [
      { ...owner, accountId: "acct_2" },
      { ...owner, environment: "test" },
      { ...owner, appId: "app_2" },
    ];

    beforeEach(async () => {
      await store.insert([
        chat("by-app", { appId: "app_1", metadata: { k: "v" } }),
        chat("by-key", { metadata: { k: "v" } }),
      ]);
    });

    test("shows a key the chats of its account and environment, and an app only its own", async () => {
      for (const filter of [{}, { model: "m" }, { metadata: { k: "v" } }]) {
        expect(await ids(filter)).toEqual(["by-app", "by-key"]);
        expect(await ids(filter, {}, app)).toEqual(["by-app"]);
      }
      expect(await store.find(app, "by-app", now)).toBeDefined();
      expect(await store.find(app, "by-key", now)).toBeUndefined();
    });

    test("hides a chat from other accounts, environments and apps, for reading, labelling and paging", async () => {
      for (const stranger of strangers) {
        expect(await ids({}, {}, stranger)).toEqual([]);
        expect(await ids({ metadata: { k: "v" } }, {}, stranger)).toEqual([]);
        expect(await ids({}, { after: "by-key" }, stranger)).toBeUndefined();
        expect(await store.find(stranger, "by-key", now)).toBeUndefined();
        expect(await store.findMessages(stranger, "by-key", now)).toBeUndefined();
        expect(await store.has(stranger, "by-key", now)).toBe(false);
        expect(await store.setMetadata(stranger, "by-key", { k: "taken" }, now)).toBe(false);
        expect(await store.delete(stranger, "by-key", now)).toBe(false);
      }
      expect(await store.find(owner, "by-key", now)).toMatchObject({ metadata: { k: "v" } });
    });
  });

  describe("pages of chats", () => {
    const all = Array.from({ length: 10 }, (_, i) => `c${i}`);

    beforeEach(async () => {
      // Three chats are created in each second, and stored in reverse order.
      const chats = all.map((id, i) =>
        chat(id, { createdAt: now + Math.floor(i / 3), model: i % 2 === 0 ? "even" : "odd" }),
      );
      await store.insert(chats.toReversed());
    });

    async function walk(filter: ChatFilter, order: "asc" | "desc", limit: number): Promise<string[]> {
      const seen: string[] = [];
      for (let after: string | undefined; ; after = seen.at(-1)) {
        const page = await store.list(owner, filter, { after, limit, order }, now);
        seen.push(...(page?.chats ?? []).map(({ id }) => id));
        expect(page?.chats.length).toBeLessThanOrEqual(limit);
        if (!page?.hasMore) return seen;
      }
    }

    test("lists every chat once by creation in both directions, with any page size", async () => {
      for (const limit of [1, 2, 3, 9, 10, 11]) {
        expect(await walk({}, "asc", limit)).toEqual(all);
        expect(await walk({}, "desc", limit)).toEqual(all.toReversed());
      }
      expect(await walk({ model: "odd" }, "asc", 2)).toEqual(["c1", "c3", "c5", "c7", "c9"]);
      expect(await walk({ model: "odd" }, "desc", 2)).toEqual(["c9", "c7", "c5", "c3", "c1"]);
    });

    test("returns no page after an unknown id", async () => {
      expect(await ids({}, { after: "nobody" })).toBeUndefined();
    });

    test("continues after a deleted chat for an hour", async () => {
      await store.delete(owner, "c4", now);
      expect(await ids({}, { after: "c4", limit: 2 })).toEqual(["c5", "c6"]);
      expect(await ids({}, { after: "c4", limit: 2, order: "desc" })).toEqual(["c3", "c2"]);
      expect(await store.deleteExpired(now + 3_599, 100)).toBe(0);
      expect(await store.deleteExpired(now + 3_600, 100)).toBe(1);
      expect(await ids({}, { after: "c4" })).toBeUndefined();
    });

    test("cuts a page of chats at 16 million characters and reports that more follow", async () => {
      const large = { content: "x".repeat(6_000_000) };
      await store.insert(["l0", "l1", "l2", "l3"].map((id) => chat(id, { model: "large", completion: large })));
      const page = { after: undefined, limit: 10, order: "asc" } as const;
      const first = await store.list(owner, { model: "large" }, page, now);
      expect(first?.chats.map(({ id }) => id)).toEqual(["l0", "l1"]);
      expect(first?.hasMore).toBe(true);
      expect(await walk({ model: "large" }, "asc", 10)).toEqual(["l0", "l1", "l2", "l3"]);
    });

    databases.only(
      "sqlite",
      "reads chats by an index in order and then by id, for every filter and owner",
      async () => {
        // With many ids at once, SQLite would prefer another index.
        const all = Array.from({ length: 50 }, (_, i) => `z${i + 10}`);
        await store.insert(all.map((id) => chat(id, { personId: "usr_1", appId: "app_1", metadata: { a: "1" } })));
        const plansOf = async (filter: ChatFilter, of: Partial<ChatOwner>) => {
          const plans = new Set<string>();
          const page = { after: "z10", limit: 40, order: "asc" } as const;
          const found = await new SqlChatStore(explained(db, plans)).list({ ...owner, ...of }, filter, page, now);
          expect(found?.chats.map(({ id }) => id)).toEqual(all.slice(1, 41));
          return [...plans].sort();
        };
        const byId = "SEARCH c USING INDEX sqlite_autoindex_stored_chats_1 (id=?)";
        const within = (index: string, column: string) =>
          `SEARCH c USING INDEX stored_chats_${index} (account_id=? AND environment=?${column} AND (created_at,id)>(?,?))`;
        for (const search of [undefined, "hello"]) {
          const sought = search === undefined ? {} : { search };
          for (const [more, of, index] of [
            [{}, {}, within("by_owner", "")],
            [{ model: "m" }, {}, within("by_model", " AND model=?")],
            [{}, { appId: "app_1" }, within("by_app", " AND app_id=?")],
            [{ model: "m" }, { appId: "app_1" }, within("by_app", " AND app_id=?")],
            [{}, { personId: "usr_1" }, within("by_person", " AND person_id=?")],
            [{ model: "m" }, { personId: "usr_1", appId: "app_1" }, within("by_person", " AND person_id=?")],
          ] satisfies [ChatFilter, Partial<ChatOwner>, string][]) {
            expect(await plansOf({ ...more, ...sought }, of)).toEqual([byId, index]);
          }
        }
        expect(await plansOf({ metadata: { a: "1" }, model: "m" }, {})).toEqual([
          byId,
          "SEARCH p USING PRIMARY KEY (account_id=? AND environment=? AND tag=? AND (created_at,chat_id)>(?,?))",
        ]);
      },
    );
  });

  describe("a search for chats", () => {
    const says = (content: string): Partial<NewChat> => ({ messages: [{ role: "user", content }] });
    const all = (order: "asc" | "desc" = "asc") => ({ after: undefined, limit: 100, order }) as const;

    test("finds chats by the text of messages or answers, in list order and with other filters", async () => {
      await store.insert([
        chat("a", { ...says("Where is the Mill?"), metadata: { k: "1" } }),
        chat("b", says("Nowhere")),
        chat("c", { model: "other", completion: { choices: [{ message: { content: "A mill wheel." } }] } }),
      ]);
      expect(await ids({ search: "MILL" })).toEqual(["a", "c"]);
      expect(await ids({ search: "mill" }, { order: "desc" })).toEqual(["c", "a"]);
      expect(await ids({ search: "mill", model: "other" })).toEqual(["c"]);
      expect(await ids({ search: "mill", metadata: { k: "1" } })).toEqual(["a"]);
      expect(await ids({ search: "mill" }, { after: "a" })).toEqual(["c"]);
      expect(await ids({ search: "%" })).toEqual([]);
      expect(await ids({ search: "mill" }, { after: "nobody" })).toBeUndefined();
    });

    test("finds no chat of others, and no deleted or expired one", async () => {
      await store.insert([
        chat("mine", { ...says("mill"), appId: "app_1" }),
        chat("deleted", says("mill")),
        chat("expired", { ...says("mill"), expiresAt: now }),
      ]);
      await store.delete(owner, "deleted", now);
      expect(await ids({ search: "mill" })).toEqual(["mine"]);
      expect(await ids({ search: "mill" }, {}, { ...owner, appId: "app_1" })).toEqual(["mine"]);
      for (const stranger of [{ accountId: "acct_2" }, { appId: "app_2" }, { personId: "usr_1" }]) {
        expect(await ids({ search: "mill" }, {}, { ...owner, ...stranger })).toEqual([]);
      }
    });

    test("finds every match once, with any page size", async () => {
      const names = Array.from({ length: 130 }, (_, i) => `c${String(i).padStart(3, "0")}`);
      await store.insert(names.map((id, i) => chat(id, says(i % 7 === 0 ? "mill" : "none"))));
      const matches = names.filter((_, i) => i % 7 === 0);
      for (const limit of [1, 3, matches.length, 100]) {
        const seen: string[] = [];
        for (let after: string | undefined; ; ) {
          const page = await store.list(owner, { search: "mill" }, { ...all(), after, limit }, now);
          seen.push(...(page?.chats ?? []).map(({ id }) => id));
          if (!page?.hasMore) break;
          after = page.lastId;
        }
        expect(seen).toEqual(matches);
      }
    });

    test("scans a thousand chats for a page of a search, and returns where the next page continues", async () => {
      const names = Array.from({ length: 1_005 }, (_, i) => `c${String(i).padStart(4, "0")}`);
      await store.insert(names.map((id, i) => chat(id, says(i === 1_002 ? "mill" : "none"))));
      const first = await store.list(owner, { search: "mill" }, all(), now);
      expect(first).toEqual({ chats: [], hasMore: true, lastId: "c0999" });
      const second = await store.list(owner, { search: "mill" }, { ...all(), after: "c0999" }, now);
      expect(second?.chats.map(({ id }) => id)).toEqual(["c1002"]);
      expect(second?.hasMore).toBe(false);
    });

    test("scans eight million characters for a page of a search, with other work in between", async () => {
      const long = says("x".repeat(1_000_000));
      await store.insert(Array.from({ length: 12 }, (_, i) => chat(`c${String(i).padStart(2, "0")}`, long)));
      let turns = 0;
      let next = setImmediate(function turn() {
        turns += 1;
        next = setImmediate(turn);
      });
      const page = await store.list(owner, { search: "mill" }, all(), now);
      clearImmediate(next);
      expect(page).toEqual({ chats: [], hasMore: true, lastId: "c07" });
      expect(turns).toBeGreaterThanOrEqual(7);
    });

    test("bounds the shown text of a search page to 16 million characters", async () => {
      const completion = { choices: [{ message: { content: `mill ${"x".repeat(3_900_000)}` } }] };
      await store.insert(["l0", "l1", "l2"].map((id) => chat(id, { completion })));
      expect(await ids({ search: "mill" })).toEqual(["l0", "l1", "l2"]);
      const parameters = { tools: ["y".repeat(9_000_000)] };
      await store.insert(["m0", "m1"].map((id) => chat(id, { ...says("wheel"), parameters })));
      const page = await store.list(owner, { search: "wheel" }, { ...all(), after: "l2" }, now);
      expect(page?.chats.map(({ id }) => id)).toEqual(["m0"]);
      expect([page?.hasMore, page?.lastId]).toEqual([true, "m0"]);
    });
  });

  describe("metadata", () => {
    beforeEach(async () => {
      await store.insert([
        chat("a", { metadata: { env: "prod", user: "1" } }),
        chat("b", { metadata: { env: "prod", user: "2" }, model: "other" }),
        chat("c", { metadata: { env: "prod" } }),
        chat("d", { metadata: { user: "prod", en: "vprod" } }),
      ]);
    });

    test("lists the chats that have all the given labels", async () => {
      expect(await ids({ metadata: { env: "prod" } })).toEqual(["a", "b", "c"]);
      expect(await ids({ metadata: { env: "prod", user: "2" } })).toEqual(["b"]);
      expect(await ids({ metadata: { user: "2", env: "prod" }, model: "m" })).toEqual([]);
      expect(await ids({ metadata: { env: "prod" } }, { order: "desc", limit: 2 })).toEqual(["c", "b"]);
      expect(await ids({ metadata: { env: "prod" } }, { after: "a", limit: 1 })).toEqual(["b"]);
      expect(await ids({ metadata: { user: "prod" } })).toEqual(["d"]);
      expect(await ids({ metadata: { env: "PROD" } })).toEqual([]);
    });

    test("replaces a chat's metadata as a whole, and finds the chat by the new labels only", async () => {
      expect(await store.setMetadata(owner, "a", { env: "test" }, now)).toBe(true);
      expect((await store.find(owner, "a", now))?.metadata).toEqual({ env: "test" });
      expect(await ids({ metadata: { env: "prod" } })).toEqual(["b", "c"]);
      expect(await ids({ metadata: { user: "1" } })).toEqual([]);
      expect(await ids({ metadata: { env: "test" } })).toEqual(["a"]);
      expect(await store.setMetadata(owner, "a", {}, now)).toBe(true);
      expect(await ids({ metadata: { env: "test" } })).toEqual([]);
      expect(await store.setMetadata(owner, "nobody", {}, now)).toBe(false);
    });
  });

  describe("deletion of chats", () => {
    test("deletes a chat at once and for good, from finding, listing and labelling too", async () => {
      await store.insert([chat("a", { metadata: { k: "v" } }), chat("b")]);
      expect(await store.delete(owner, "a", now)).toBe(true);
      expect(await store.find(owner, "a", now)).toBeUndefined();
      expect(await store.findMessages(owner, "a", now)).toBeUndefined();
      expect(await store.has(owner, "a", now)).toBe(false);
      expect(await ids()).toEqual(["b"]);
      expect(await ids({ metadata: { k: "v" } })).toEqual([]);
      expect(await store.setMetadata(owner, "a", {}, now)).toBe(false);
      expect(await store.delete(owner, "a", now)).toBe(false);
      await store.insert([chat("a")]);
      expect(await store.find(owner, "a", now)).toBeUndefined();
    });

    test("erases a deleted chat's content in every row", async () => {
      const secret = { content: "CANARY" };
      await store.insert([
        chat("a", { metadata: { k: "CANARY" }, parameters: secret, completion: secret, messages: [secret] }),
      ]);
      await store.delete(owner, "a", now);
      expect(JSON.stringify([...(await db`SELECT * FROM stored_chats`)])).not.toContain("CANARY");
      expect([...(await db`SELECT * FROM stored_chat_tags`)]).toEqual([]);
    });
  });

  describe("expiry of chats", () => {
    beforeEach(async () => {
      await store.insert([
        ...Array.from({ length: 5 }, (_, i) => chat(`old${i}`, { expiresAt: now, metadata: { k: "v" } })),
        chat("new", { expiresAt: now + 1, metadata: { k: "v" } }),
      ]);
    });

    test("hides an expired chat before any sweep", async () => {
      expect(await ids()).toEqual(["new"]);
      expect(await ids({ metadata: { k: "v" } })).toEqual(["new"]);
      expect(await store.find(owner, "old0", now)).toBeUndefined();
      expect(await store.find(owner, "old0", now - 1)).toBeDefined();
      expect(await store.setMetadata(owner, "old0", {}, now)).toBe(false);
      expect(await store.delete(owner, "old0", now)).toBe(false);
    });

    test("sweeps expired chats with their labels up to the limit, and returns their number", async () => {
      expect(await store.deleteExpired(now, 3)).toBe(3);
      expect(await store.deleteExpired(now, 3)).toBe(2);
      expect(await store.deleteExpired(now, 3)).toBe(0);
      const left = async (table: string) => Number((await db.unsafe(`SELECT count(*) AS n FROM ${table}`))[0].n);
      expect(await left("stored_chats")).toBe(1);
      expect(await left("stored_chat_tags")).toBe(1);
    });
  });

  test("does not undo a write with a concurrent transaction that fails", async () => {
    const failed = db
      .begin(async (tx) => {
        await tx`INSERT INTO stored_chat_tags VALUES ('x', 'live', 't', 1, 'x')`;
        await Bun.sleep(5);
        throw new Error("undone");
      })
      .catch(() => {});
    await Bun.sleep(1);
    await Promise.all([store.insert([chat("a"), chat("b")]), failed]);
    expect(await store.delete(owner, "b", now)).toBe(true);
    expect(await ids()).toEqual(["a"]);
  });

  test("answers 503 for a failing database without quoting content", async () => {
    await db.unsafe("ALTER TABLE stored_chats RENAME TO gone");
    const calls = [
      () => store.insert([chat("CANARY")]),
      () => store.find(owner, "CANARY", now),
      () => store.findMessages(owner, "CANARY", now),
      () => store.has(owner, "CANARY", now),
      () => ids({ model: "CANARY" }),
      () => store.setMetadata(owner, "CANARY", {}, now),
      () => store.delete(owner, "CANARY", now),
      () => store.deleteExpired(now, 1),
    ];
    for (const call of calls) {
      const error: unknown = await call().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(GatewayError);
      const { code, message, detail } = error as GatewayError;
      expect(code).toBe("service_unavailable");
      expect(`${message} ${detail}`).not.toContain("CANARY");
      expect(detail).toBe(`database: ${databases.missingTable}`);
    }
    await db.unsafe("ALTER TABLE gone RENAME TO stored_chats");
  });
});
