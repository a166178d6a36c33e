// Approvals of tool calls in the database: the first caller takes an approval, from any number of processes.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import { SqlApprovedCalls } from "./approved-call-store.ts";

onEachDatabase((databases) => {
  let opened: TestDatabase;
  let store: SqlApprovedCalls;

  beforeEach(async () => {
    opened = await databases.open();
    store = new SqlApprovedCalls(opened.db);
  });
  afterEach(() => opened.close());

  const call = (name: string) => ({ callId: `mcp_${name}`, responseId: `resp_${name}` });

  test("lets one of many concurrent callers take an approved call, and tells the others its result", async () => {
    const others = new SqlApprovedCalls(await opened.openAgain());
    // Connections to one SQLite file wait for each other in the calling thread, which is the same one here, so SQLite
    // uses one connection.
    const another = databases.dialect === "sqlite" ? store : others;
    const taken = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? store : another).take("one", call(String(n)), 100)),
    );
    const first = taken.indexOf(undefined);
    expect(taken.filter((by) => by === undefined)).toHaveLength(1);
    expect(taken.filter((by) => by !== undefined)).toEqual(Array.from({ length: 19 }, () => call(String(first))));
    expect(await others.take("one", call("late"), 100)).toEqual(call(String(first)));
    expect(await others.take("two", call("a"), 100)).toBeUndefined();
  });

  test("keeps an approved call taken until it has expired and was swept, oldest first", async () => {
    for (const [name, expiresAt] of [["a", 1] as const, ["b", 2] as const, ["c", 100] as const])
      expect(await store.take(name, call(name), expiresAt)).toBeUndefined();
    expect(await store.deleteExpired(50, 1)).toBe(1);
    expect([await store.take("b", call("x"), 100), await store.take("c", call("x"), 100)]).toEqual([
      ...[call("b"), call("c")],
    ]);
    expect([await store.deleteExpired(50, 10), await store.deleteExpired(50, 10)]).toEqual([1, 0]);
    expect(await store.take("a", call("x"), 100)).toBeUndefined();
  });
});
