// Refused requests in the database: the right requests in the right order, and bounded reads for each page.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import type { RefusedRequest } from "../../domain/usage/refused-request.ts";
import type { RequestFilter, RequestPosition } from "../../domain/usage/request-log.ts";
import { SqlRefusedRequests } from "./refused-request-store.ts";
import { SqlRetentionStore } from "./retention-store.ts";

const start = Date.UTC(2026, 0, 1) / 1000;

let opened: TestDatabase;
let store: SqlRefusedRequests;

onEachDatabase((databases) => {
  beforeAll(async () => {
    opened = await databases.open();
    store = new SqlRefusedRequests(opened.db);
  });

  afterAll(async () => {
    await opened.close();
  });

  let made = 0;

  function refusal(more: Partial<RefusedRequest> = {}): RefusedRequest {
    return {
      ...{ requestId: `req_${String(made++).padStart(8, "0")}`, at: start, accountId: "acct_1", keyId: "key_1" },
      ...{ appId: null, environment: "live", operation: "chat", model: "m", stream: false },
      ...{ errorCode: "rate_limit_exceeded", message: "It is too much.", durationMs: 2 },
      ...more,
    };
  }

  async function only(...refused: readonly RefusedRequest[]): Promise<void> {
    await opened.db`DELETE FROM refused_requests`;
    for (let i = 0; i < refused.length; i += 500) await store.add(refused.slice(i, i + 500));
  }

  const filter = (more: Partial<RequestFilter> = {}): RequestFilter => ({
    ...{ accountId: "acct_1", environment: "live", start: 0, end: start + 86_400, ...more },
  });

  async function all(asked: RequestFilter, limit = 100): Promise<RefusedRequest[]> {
    const found: RefusedRequest[] = [];
    let after: RequestPosition | undefined;
    for (let pages = 0; pages < 1_000; pages++) {
      const { refused, next } = await store.list(asked, { after, limit });
      expect(refused.length).toBeLessThanOrEqual(limit);
      found.push(...refused);
      if (next === null) return found;
      after = next;
    }
    throw new Error("The pages have no end.");
  }

  test("returns a refused request whole to its owner, stores it once, and finds it by its facts", async () => {
    const one = refusal({ appId: "app_1", at: start + 1, message: `"'); DROP TABLE refused_requests; --` });
    const unread = refusal({ model: null, stream: null, errorCode: "insufficient_scope" });
    await only(one, unread);
    await store.add([{ ...one, message: "again" }]);
    expect(await all(filter())).toEqual([one, unread]);
    const owner = { accountId: "acct_1", environment: "live" } as const;
    expect(await store.find({ ...owner, appId: "app_1" }, one.requestId)).toEqual(one);
    for (const stranger of [{ accountId: "acct_2" }, { environment: "test" as const }, { appId: "app_2" }]) {
      expect(await store.find({ ...owner, ...stranger }, one.requestId)).toBeUndefined();
      expect(await all(filter(stranger))).toEqual([]);
    }
    const narrower: Partial<RequestFilter>[] = [{ model: "m" }, { stream: false }, { start: start + 1 }];
    for (const more of narrower) expect(await all(filter(more))).toEqual([one]);
    for (const more of [{ keyId: "key_2" }, { stream: true }]) expect(await all(filter(more))).toEqual([]);
  });

  test("lists refused requests without gaps or duplicates, within a second and with rare matches", async () => {
    const many = Array.from({ length: 5_000 }, (_, i) =>
      refusal({ at: start + Math.floor(i / 1_700), keyId: i % 1_000 === 0 ? "key_rare" : "key_1" }),
    );
    await only(...many);
    const ids = (refused: readonly RefusedRequest[]) => refused.map(({ requestId }) => requestId);
    const expected = ids(many).reverse();
    expect(ids(await all(filter(), 777))).toEqual(expected);
    const rare = many.filter(({ keyId }) => keyId === "key_rare");
    expect(ids(await all(filter({ keyId: "key_rare" }), 2))).toEqual(ids(rare).reverse());
  });

  // hardening: O8
  test("deletes refused requests past their retention, and no others", async () => {
    const [old, young] = [refusal({ at: start - 1 }), refusal()];
    await only(old, young);
    const retention = new SqlRetentionStore(opened.db);
    const purged = await retention.purge("refused_requests", start, { cursor: undefined, limit: 10 });
    expect(purged).toEqual({ deleted: 1, next: null });
    expect(await all(filter())).toEqual([young]);
  });
});
