// Processes that share a database of either kind: which are alive and which are dead, by the database's clock.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import { replicaGoneSeconds } from "../../domain/replica.ts";
import type { Database } from "../sql/database.ts";
import { SqlReplicaStore } from "./replica-store.ts";

onEachDatabase((databases) => {
  let opened: TestDatabase;
  let db: Database;
  let store: SqlReplicaStore;

  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
    store = new SqlReplicaStore(db);
  });

  afterEach(() => opened.close());

  const replica = (id: string, advertiseUrl: string | null = null) => ({ id, advertiseUrl, version: "1.2.3" });
  const ids = (live: readonly { id: string }[]) => live.map(({ id }) => id);
  const age = (id: string, seconds: number) =>
    db`UPDATE replicas SET seen_at = seen_at - ${seconds}, started_at = started_at - ${seconds} WHERE id = ${id}`;

  test("registers a replica and returns all live ones, oldest first", async () => {
    expect(await store.beat(replica("rep_b", "http://10.0.0.5:7545"), false)).toMatchObject([
      { id: "rep_b", advertiseUrl: "http://10.0.0.5:7545", version: "1.2.3" },
    ]);
    await age("rep_b", 5);
    const live = await store.beat(replica("rep_a"), false);
    expect(ids(live)).toEqual(["rep_b", "rep_a"]);
    expect(live[1]?.advertiseUrl).toBeNull();
    for (const { startedAt, seenAt } of live) {
      expect(seenAt).toBe(startedAt);
      expect(Math.abs(seenAt - Date.now() / 1000)).toBeLessThan(10);
    }
  });

  test("keeps what each replica reports of failing upstreams with its heartbeat, and lists the live ones", async () => {
    const last = { cause: "timeout", status: null, message: "no answer began", at: 1 } as const;
    const attempts = [
      { upstream: "north", model: "m", attempts: 5, failed: 5, isFailing: true, since: 1, last },
      { upstream: "north", model: null, attempts: 5, failed: 5, isFailing: true, since: 1, last },
    ];
    await store.beat({ ...replica("rep_a"), attempts }, false);
    const [seen, own] = await store.beat(replica("rep_b"), false);
    expect([seen?.attempts, own?.attempts]).toEqual([attempts, null]);
    expect(await store.live()).toMatchObject([{ id: "rep_a", attempts }, { id: "rep_b" }]);
    expect((await store.beat({ ...replica("rep_a"), attempts: [] }, false))[0]?.attempts).toEqual([]);
    await age("rep_a", replicaGoneSeconds + 1);
    expect(ids(await store.live())).toEqual(["rep_b"]);
  });

  test("updates a replica's last heartbeat, not its start", async () => {
    await store.beat(replica("rep_a"), false);
    await age("rep_a", 10);
    const [again] = await store.beat(replica("rep_a"), false);
    expect((again?.seenAt ?? 0) - (again?.startedAt ?? 0)).toBeGreaterThanOrEqual(10);
  });

  test(`treats a process without a heartbeat for ${replicaGoneSeconds} s as gone, and deletes its row minutes later`, async () => {
    await store.beat(replica("rep_a"), false);
    await age("rep_a", replicaGoneSeconds + 1);
    expect(ids(await store.beat(replica("rep_b"), false))).toEqual(["rep_b"]);
    expect(ids(await store.beat(replica("rep_a"), false))).toEqual(["rep_a", "rep_b"]);
    await age("rep_a", 700);
    await store.beat(replica("rep_b"), false);
    expect(ids(await db`SELECT id FROM replicas`)).toEqual(["rep_b"]);
  });

  test("removes a stopped replica at once, and clears earlier ones for a sole replica", async () => {
    await store.beat(replica("rep_a"), false);
    await store.beat(replica("rep_b"), false);
    await store.remove("rep_a");
    expect(ids(await store.beat(replica("rep_b"), false))).toEqual(["rep_b"]);
    expect(ids(await store.beat(replica("rep_c"), true))).toEqual(["rep_c"]);
  });
});
