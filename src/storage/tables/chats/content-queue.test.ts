// The queue of chats to be stored: batches, outages, its bound and its close. The store is a real database.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import type { Log } from "../../../base/log.ts";
import type { NewChat } from "../../../domain/models/stored-chat.ts";
import type { Database } from "../../sql/database.ts";
import { SqlChatStore } from "./chat-store.ts";
import { ContentQueue } from "./content-queue.ts";

let opened: TestDatabase;
let db: Database;
let queue: ContentQueue<NewChat>;
let logged: { event: string; fields: unknown }[];

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
    logged = [];
    const note = (event: string, fields?: unknown) => void logged.push({ event, fields });
    const log: Log = { info: note, warn: note, error: note };
    queue = new ContentQueue({ what: "chat", store: new SqlChatStore(db), log, retentionDays: () => 30 });
  });

  afterEach(async () => {
    await queue.close();
    await opened.close();
  });

  function chat(id: string): NewChat {
    return {
      id,
      accountId: "acct_1",
      environment: "live",
      keyId: "key_1",
      appId: null,
      personId: null,
      model: "m",
      createdAt: 1_800_000_000,
      expiresAt: 1_900_000_000,
      metadata: { k: "CANARY" },
      parameters: {},
      completion: { text: "CANARY" },
      messages: ["CANARY"],
    };
  }

  async function count(table = "stored_chats"): Promise<number> {
    const [row] = await db.unsafe(`SELECT count(*) AS count FROM ${table}`);
    return Number(row?.count);
  }

  async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
    const endMs = performance.now() + 10_000;
    while (!(await condition())) {
      if (performance.now() > endMs) throw new Error(`Not in time: ${what}`);
      await Bun.sleep(10);
    }
  }

  test("stores a queued chat soon, without a flush", async () => {
    queue.add(chat("a"), 100);
    expect(await count()).toBe(0);
    await until(async () => (await count()) === 1, "the chat is stored");
  });

  test("flushes all queued chats in any number of batches, also during another flush", async () => {
    for (let i = 0; i < 350; i++) queue.add(chat(`a${i}`), 100);
    const first = queue.flush();
    for (let i = 0; i < 10; i++) queue.add(chat(`b${i}`), 3_000_000);
    await queue.flush();
    expect(await count()).toBe(360);
    await first;
    await queue.flush();
    expect(logged).toEqual([]);
  });

  describe("an unavailable database for chats", () => {
    beforeEach(async () => {
      await db.unsafe("ALTER TABLE stored_chats RENAME TO gone");
    });

    test("keeps chats while the database is unavailable, logs once without content, and stores them later", async () => {
      for (let i = 0; i < 150; i++) queue.add(chat(`a${i}`), 100);
      await queue.flush();
      await queue.flush();
      expect(logged).toEqual([
        { event: "chat_write_failed", fields: { pending: 150, detail: `database: ${databases.missingTable}` } },
      ]);
      await db.unsafe("ALTER TABLE gone RENAME TO stored_chats");
      await queue.flush();
      expect(await count()).toBe(150);
      expect(logged.at(-1)?.event).toBe("chat_write_recovered");
      expect(JSON.stringify(logged)).not.toContain("CANARY");
    });

    test("logs each outage of the database and its end once", async () => {
      queue.add(chat("a"), 100);
      await queue.flush();
      await db.unsafe("ALTER TABLE gone RENAME TO stored_chats");
      for (const id of ["b", "c"]) {
        queue.add(chat(id), 100);
        await queue.flush();
      }
      await db.unsafe("ALTER TABLE stored_chats RENAME TO gone");
      queue.add(chat("d"), 100);
      await queue.flush();
      await db.unsafe("ALTER TABLE gone RENAME TO stored_chats");
      await queue.flush();
      const once = ["chat_write_failed", "chat_write_recovered"];
      expect(logged.map(({ event }) => event)).toEqual([...once, ...once]);
    });

    test("retries a queued chat without a flush", async () => {
      queue.add(chat("a"), 100);
      await until(() => logged.length > 0, "the first try fails");
      await db.unsafe("ALTER TABLE gone RENAME TO stored_chats");
      await until(async () => (await count()) === 1, "the chat is stored at the next try");
    });

    test("stores no newer chats once 1,000 wait, and logs their number", async () => {
      for (let i = 0; i < 1_003; i++) queue.add(chat(`a${i}`), 100);
      await until(() => logged.length === 2, "both are logged");
      expect(logged[1]).toEqual({ event: "chats_not_stored", fields: { count: 3, pending: 1_000 } });
      await db.unsafe("ALTER TABLE gone RENAME TO stored_chats");
      await queue.flush();
      expect(await count()).toBe(1_000);
    });

    test("drops a chat above 64 million waiting characters, but keeps small ones, until some are stored", async () => {
      for (let i = 0; i < 6; i++) queue.add(chat(`large${i}`), 12_000_000);
      queue.add(chat("small"), 100);
      await db.unsafe("ALTER TABLE gone RENAME TO stored_chats");
      await queue.flush();
      expect(await count()).toBe(6);
      for (let i = 0; i < 5; i++) queue.add(chat(`later${i}`), 12_000_000);
      await queue.flush();
      expect(await count()).toBe(11);
    });

    test("loses waiting chats on close if the database is unavailable, and logs that", async () => {
      queue.add(chat("a"), 100);
      await queue.close();
      queue.add(chat("b"), 100);
      expect(logged.slice(1)).toEqual([
        { event: "chats_not_stored", fields: { count: 1, pending: 0 } },
        { event: "chats_not_stored", fields: { count: 1, pending: 0 } },
      ]);
      await db.unsafe("ALTER TABLE gone RENAME TO stored_chats");
    });
  });

  test("stores waiting chats on close", async () => {
    for (let i = 0; i < 150; i++) queue.add(chat(`a${i}`), 100);
    await queue.close();
    expect(await count()).toBe(150);
  });
});
