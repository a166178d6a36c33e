// The spend and the last use of people, as lists of people show them.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import { accountFor, keyRecordFor } from "../../../tests/support/principal.ts";
import { explained } from "../../../tests/support/query-plans.ts";
import type { ApiKeyRecord } from "../../domain/principal.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import { accounts, apiKeys } from "../../storage/tables/credential-rows.ts";
import { SqlPeopleUsage } from "./people-usage.ts";
import { catchUp } from "./usage-rows.ts";
import { openUsageWriter } from "./usage-writer.ts";

const since = Date.UTC(2026, 8, 1) / 1000;
const live = { accountId: "acct_1", environment: "live", since } as const;

const key = (id: string, personId: string | null, lastUsedAt: number | null, more: Partial<ApiKeyRecord> = {}) =>
  keyRecordFor({ id, personId, lastUsedAt, accountId: "acct_1", environment: "live", ...more });
const credentials = [
  key("mbr_ada_live", "usr_ada", since + 50),
  key("key_ada_ended", "usr_ada", since + 10, { revoked: true, revokedAt: 1 }),
  key("key_ada_test", "usr_ada", since + 90, { environment: "test" }),
  key("key_ada_elsewhere", "usr_ada", since + 200, { accountId: "acct_2" }),
  key("key_bob", "usr_bob", null),
  key("key_account", null, since + 300),
];

onEachDatabase((databases) => {
  let opened: TestDatabase;

  beforeAll(async () => {
    opened = await databases.open();
    const { db } = opened;
    await db`INSERT INTO accounts ${db(["acct_1", "acct_2"].map((id) => accounts.row(accountFor({ id }))))}`;
    await db`INSERT INTO api_keys ${db(credentials.map(apiKeys.row))}`;
    const writer = await openUsageWriter(db);
    const records = [since - 1, since, since + 3 * 86_400].flatMap((at) =>
      credentials.map(
        ({ id, accountId, environment }, i): UsageRecord => ({
          ...{ requestId: `req_${id}_${at}`, at, accountId, environment, keyId: id, appId: null, model: "m" },
          ...{ operation: "chat", stream: false, outcome: "completed", errorCode: null, estimated: false },
          ...{ promptTokens: 10, completionTokens: 3, nanoUsd: 10 ** i, capped: false, upstream: "up" },
          ...{ durationMs: 100, firstTokenMs: null, queueMs: 0 },
        }),
      ),
    );
    await writer.insert(records);
    await catchUp(writer);
    writer.close();
  });

  afterAll(() => opened.close());

  test("adds up a person's spend of the month in one account and environment, ended credentials included", async () => {
    const usage = new SqlPeopleUsage(opened.db);
    const people = ["usr_ada", "usr_bob", "usr_nobody"];
    expect(await usage.of(people, live)).toEqual(
      new Map([
        ["usr_ada", { nanoUsd: 22, lastUsedAt: since + 90 }],
        ["usr_bob", { nanoUsd: 20_000, lastUsedAt: null }],
      ]),
    );
    expect((await usage.of(people, { ...live, environment: "test" })).get("usr_ada")?.nanoUsd).toBe(200);
    const elsewhere = await usage.of(people, { ...live, accountId: "acct_2" });
    expect(elsewhere).toEqual(new Map([["usr_ada", { nanoUsd: 2_000, lastUsedAt: since + 200 }]]));
    const ofAll = await usage.of(people, { ...live, accountId: null });
    expect(ofAll.get("usr_ada")).toEqual({ nanoUsd: 2_022, lastUsedAt: since + 200 });
    expect(await usage.of([], live)).toEqual(new Map());
  });

  test("waits for sums that are not in the roll-ups yet", async () => {
    let caughtUp = 0;
    await new SqlPeopleUsage(opened.db, async () => void caughtUp++).of(["usr_ada"], live);
    expect(caughtUp).toBe(1);
  });

  databases.only("sqlite", "reads only the credentials and roll-ups of the people, by their indexes", async () => {
    const plans = new Set<string>();
    for (const accountId of ["acct_1", null]) {
      await new SqlPeopleUsage(explained(opened.db, plans)).of(["usr_ada", "usr_bob"], { ...live, accountId });
    }
    expect([...plans].filter((plan) => /^S(CAN|EARCH)/.test(plan))).toEqual([
      expect.stringContaining("api_keys USING INDEX api_keys_by_person (person_id=?)"),
      expect.stringContaining("usage_rollups USING INDEX usage_rollups_by_key (key_id=? AND span=? AND start>?)"),
    ]);
  });
});
