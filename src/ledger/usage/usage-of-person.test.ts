// The usage, requests and refusals that a person sees: those of the person's own credentials in the account and
// environment, including ended ones.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import { accountFor, keyRecordFor } from "../../../tests/support/principal.ts";
import { explained } from "../../../tests/support/query-plans.ts";
import type { RequestOwner } from "../../domain/usage/request-log.ts";
import type { UsageQuery, UsageRecord } from "../../domain/usage/usage.ts";
import { accounts, apiKeys } from "../../storage/tables/credential-rows.ts";
import { SqlRefusalStore } from "../../storage/tables/refusal-store.ts";
import { SqlRefusedRequests } from "../../storage/tables/refused-request-store.ts";
import { SqlRequestLog } from "../request-log.ts";
import { SqlUsageReports } from "./usage-reports.ts";
import { catchUp } from "./usage-rows.ts";
import { openUsageWriter } from "./usage-writer.ts";

const start = Date.UTC(2026, 8, 1) / 1000;
const end = start + 86_400;
const page = { after: undefined, limit: 100 };

/** The person of each credential, by the credential's id. */
const persons: Readonly<Record<string, string | null>> = {
  ...{ key_ada: "usr_ada", key_ada_ended: "usr_ada", mbr_ada_live: "usr_ada", grt_ada: "usr_ada" },
  ...{ key_bob: "usr_bob", key_account: null },
};
const ofAda = Object.keys(persons).filter((id) => persons[id] === "usr_ada");
const ada: RequestOwner = { accountId: "acct_1", environment: "live", personId: "usr_ada" };

onEachDatabase((databases) => {
  let opened: TestDatabase;

  beforeAll(async () => {
    opened = await databases.open();
    const { db } = opened;
    await db`INSERT INTO accounts ${db(["acct_1", "acct_2"].map((id) => accounts.row(accountFor({ id }))))}`;
    const credentials = Object.entries(persons).map(([id, personId]) =>
      keyRecordFor({
        id,
        personId,
        revoked: id.endsWith("ended"),
        revokedAt: 1,
        appId: id === "grt_ada" ? "app_1" : null,
      }),
    );
    const elsewhere = keyRecordFor({ id: "key_ada_elsewhere", personId: "usr_ada", accountId: "acct_2" });
    const tried = keyRecordFor({ id: "key_ada_test", personId: "usr_ada", environment: "test" });
    await db`INSERT INTO api_keys ${db([...credentials, elsewhere, tried].map(apiKeys.row))}`;
    const all = [
      ...Object.keys(persons).map((keyId) => ({ keyId, accountId: "acct_1", environment: "live" as const })),
      { keyId: "key_ada_elsewhere", accountId: "acct_2", environment: "live" as const },
      { keyId: "key_ada_test", accountId: "acct_1", environment: "test" as const },
    ].map((one) => ({ ...one, appId: one.keyId === "grt_ada" ? "app_1" : null, model: "m", at: start + 60 }));
    const writer = await openUsageWriter(db);
    await writer.insert(
      all.map(
        (one): UsageRecord => ({
          ...one,
          ...{ requestId: `req_${one.keyId}`, operation: "chat", stream: false, outcome: "completed", errorCode: null },
          ...{ promptTokens: 10, completionTokens: 3, estimated: false, nanoUsd: 7, capped: false, upstream: "up" },
          ...{ durationMs: 100, firstTokenMs: null, queueMs: 0 },
        }),
      ),
    );
    await catchUp(writer);
    writer.close();
    await new SqlRefusalStore(db).add(
      [...all, { accountId: "acct_1", environment: "live" as const, keyId: null, appId: null, model: null }].map(
        (one) => ({
          ...{
            accountId: one.accountId,
            environment: one.environment,
            keyId: one.keyId,
            appId: one.appId,
            model: one.model,
          },
          ...{ start, reason: "key_requests" as const, requests: 1, lastAt: start + 1 },
        }),
      ),
    );
    await new SqlRefusedRequests(db).add(
      all.map((one) => ({
        ...one,
        ...{ requestId: `ref_${one.keyId}`, operation: "chat" as const, stream: false },
        ...{ errorCode: "rate_limit_exceeded" as const, message: "No.", durationMs: 1 },
      })),
    );
  });

  afterAll(() => opened.close());

  const report = (more: Partial<UsageQuery>) =>
    new SqlUsageReports(opened.db).report({ ...ada, start, end, bucket: "hour", groupBy: ["key"], ...more }, page);
  const keysOf = (rows: readonly { groups: { key?: string | null } }[]) => rows.map(({ groups }) => groups.key);

  test("reports only the user's credentials, also narrowed to a key or app", async () => {
    expect(keysOf(await report({}))).toEqual(ofAda.toSorted());
    expect(keysOf(await report({ bucket: "month" }))).toEqual(ofAda.toSorted());
    expect(keysOf(await report({ groupBy: ["key", "tag"] }))).toEqual(ofAda.toSorted());
    expect((await report({ groupBy: [] })).map(({ requests }) => requests)).toEqual([ofAda.length]);
    expect(keysOf(await report({ keyId: "key_ada_ended" }))).toEqual(["key_ada_ended"]);
    expect(keysOf(await report({ appId: "app_1" }))).toEqual(["grt_ada"]);
    for (const keyId of ["key_bob", "key_account", "key_ada_elsewhere"]) expect(await report({ keyId })).toEqual([]);
    expect(keysOf(await report({ environment: "test" }))).toEqual(["key_ada_test"]);
    expect(await report({ personId: "usr_nobody" })).toEqual([]);
  });

  test("lists and finds requests for the user that made them, with any other filter", async () => {
    const log = new SqlRequestLog(opened.db, { monotonicMs: () => 0 });
    const refused = new SqlRefusedRequests(opened.db);
    const filter = { ...ada, start, end };
    const listed = (await log.list(filter, page)).records.map(({ keyId }) => keyId);
    expect(listed.sort()).toEqual(ofAda.toSorted());
    expect((await refused.list(filter, page)).refused.map(({ keyId }) => keyId).sort()).toEqual(ofAda.toSorted());
    for (const keyId of ["key_bob", "key_account", "key_ada_elsewhere"]) {
      expect((await log.list({ ...filter, keyId }, page)).records).toEqual([]);
      expect((await refused.list({ ...filter, keyId }, page)).refused).toEqual([]);
      expect(await log.find(ada, `req_${keyId}`)).toBeUndefined();
      expect(await refused.find(ada, `ref_${keyId}`)).toBeUndefined();
    }
    expect((await log.list({ ...filter, keyId: "key_ada" }, page)).records).toHaveLength(1);
    expect(await log.find(ada, "req_key_ada_ended")).toBeDefined();
    expect(await refused.find(ada, "ref_grt_ada")).toBeDefined();
  });

  test("lists only the user's refusals, without those that lack a key", async () => {
    const counts = await new SqlRefusalStore(opened.db).list({ ...ada, start, end }, 100);
    expect(counts.map(({ keyId }) => keyId ?? "").sort()).toEqual(ofAda.toSorted());
  });

  databases.only("sqlite", "finds a user's usage by the index of keys, however much else the account has", async () => {
    const plans = new Set<string>();
    const reports = new SqlUsageReports(explained(opened.db, plans));
    await reports.report({ ...ada, start, end, bucket: "day", groupBy: ["model"] }, page);
    const ofUsage = [...plans].filter((plan) => plan.includes("usage_rollups"));
    expect(ofUsage).toEqual([expect.stringContaining("usage_rollups_by_key (key_id=? AND span=?")]);
    expect([...plans].filter((plan) => plan.startsWith("SCAN"))).toEqual([]);
  });
});
