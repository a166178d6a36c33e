// The sweep of expired content: it runs by itself, deletes everything that has expired, and ends when it is closed.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import type { Log } from "../../base/log.ts";
import type { Database } from "../sql/database.ts";
import { SqlChatStore } from "./chats/chat-store.ts";
import { ExpirySweep } from "./expiry-sweep.ts";

const day = 86_400;
let opened: TestDatabase;
let db: Database;
let store: SqlChatStore;
let nowSeconds: number;
let logged: string[];
const deletionClock = { nowSeconds: async () => nowSeconds };
const note = (event: string, fields: unknown) => void logged.push(`${event} ${JSON.stringify(fields)}`);
const log: Log = { info: note, warn: note, error: note };

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
    store = new SqlChatStore(db);
    nowSeconds = 1_800_000_000;
    logged = [];
  });

  afterEach(async () => {
    await opened.close();
  });

  async function storeChats(count: number, expiresAt: number): Promise<void> {
    await store.insert(
      Array.from({ length: count }, () => ({
        id: Bun.randomUUIDv7(),
        accountId: "acct_1",
        environment: "live" as const,
        keyId: "key_1",
        appId: null,
        personId: null,
        model: "m",
        createdAt: nowSeconds,
        expiresAt,
        metadata: {},
        parameters: {},
        completion: {},
        messages: [],
      })),
    );
  }

  async function left(): Promise<number> {
    const [row] = await db`SELECT count(*) AS count FROM stored_chats`;
    return Number(row?.count);
  }

  // hardening: O8
  test("sweeps all that has expired, in any number, and nothing else", async () => {
    await storeChats(55, nowSeconds + day);
    await storeChats(7, nowSeconds + 2 * day);
    const retention = new ExpirySweep({ what: "chat", store, deletionClock, log });
    await retention.sweep();
    expect(await left()).toBe(62);
    nowSeconds += day;
    await Promise.all([retention.sweep(), retention.sweep()]);
    expect(await left()).toBe(7);
    expect(logged).toEqual(['chats_expired {"count":55}']);
    await retention.close();
  });

  test("sweeps repeatedly until it is closed", async () => {
    const retention = new ExpirySweep({ what: "chat", store, deletionClock, log, everyMs: 5 });
    for (let round = 0; round < 2; round++) {
      await storeChats(3, nowSeconds);
      const endMs = performance.now() + 5_000;
      while ((await left()) > 0) {
        if (performance.now() > endMs) throw new Error("not swept");
        await Bun.sleep(5);
      }
    }
    await retention.close();
    await storeChats(1, nowSeconds);
    await Bun.sleep(30);
    expect(await left()).toBe(1);
  });

  test("ends a sweep between two batches on close, and does not use the database afterwards", async () => {
    await storeChats(200, nowSeconds);
    const retention = new ExpirySweep({ what: "chat", store, deletionClock, log });
    const sweep = retention.sweep();
    await retention.close();
    await sweep;
    const rest = await left();
    expect(rest).toBeGreaterThan(0);
    expect(rest).toBeLessThan(200);
  });

  test("logs a failed sweep and makes up for it with the next one", async () => {
    await storeChats(3, nowSeconds);
    const retention = new ExpirySweep({ what: "chat", store, deletionClock, log });
    await db.unsafe("ALTER TABLE stored_chats RENAME TO gone");
    await retention.sweep();
    expect(logged).toEqual([`chat_retention_failed {"detail":"database: ${databases.missingTable}"}`]);
    await db.unsafe("ALTER TABLE gone RENAME TO stored_chats");
    await retention.sweep();
    expect(await left()).toBe(0);
    await retention.close();
  });
});
