// Totals of an owner over any span: whatever second the span begins in, no usage is missing and no older usage is
// included.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import { accountFor } from "../../../tests/support/principal.ts";
import { systemClock } from "../../base/clock.ts";
import { ownAppId, type SpanTotals, type TotalsOwner, type UsageBegin } from "../../domain/usage/usage.ts";
import { waitBriefly } from "../../storage/sql/database.ts";
import { accounts } from "../../storage/tables/credential-rows.ts";
import { SqlRetentionStore } from "../../storage/tables/retention-store.ts";
import { SpoolLedger } from "../ledger.ts";

/** Midnight in UTC. */
const day = 1_799_971_200;
const hour = day + 7 * 3_600;
const owner: TotalsOwner = { type: "account", id: "acct_1", environment: "live", since: day, until: day + 86_400 };

let opened: TestDatabase;
let ledger: SpoolLedger;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    await waitBriefly(opened.db);
    const log = { info() {}, warn() {}, error() {} };
    const directory = join(opened.directory, "spool");
    ledger = await SpoolLedger.open({ db: opened.db, directory, log, clock: systemClock, drainMs: 10_000 });
  });

  afterEach(async () => {
    await ledger.close();
    await opened.close();
  });

  let served = 0;
  function serve(at: number, tokens: number, more: Partial<UsageBegin> = {}): void {
    const begin: UsageBegin = {
      ...{ requestId: `r${served++}`, at, accountId: "acct_1", keyId: "key_1", appId: null, environment: "live" },
      ...{ operation: "chat", model: "gpt-6", stream: false, ...more },
    };
    const end = {
      promptTokens: tokens,
      completionTokens: 0,
      estimated: false,
      nanoUsd: tokens,
      upstream: "up",
    } as const;
    const times = { durationMs: 1, firstTokenMs: null, queueMs: 0 };
    ledger.begin(begin).settle({ ...end, ...times, outcome: "completed", errorCode: null, capped: false });
  }

  async function read(more: Partial<TotalsOwner>): Promise<SpanTotals | undefined> {
    let found: SpanTotals | undefined;
    await ledger.readTotals({ ...owner, ...more }, (totals) => {
      found = totals;
    });
    return found;
  }

  /**
   * Serves requests one second before, at and after the beginning of the span, in the hours around it, and on the days
   * around those.
   */
  async function serveAround(): Promise<void> {
    for (const flush of [true, false]) {
      serve(day - 1, 1);
      serve(hour - 10, 10);
      serve(hour + 599, 100);
      serve(hour + 600, 1_000);
      serve(hour + 3_600, 10_000, { model: "tiny" });
      serve(day + 86_400, 100_000, { model: "gpt-5" });
      if (flush) await ledger.flush();
    }
  }

  const until = day + 2 * 86_400;

  test("totals a period that begins within an hour exactly, stored or pending, with its first use", async () => {
    await serveAround();
    const of = async (since: number, more: Partial<TotalsOwner> = {}) => {
      const found = await read({ since, until, ...more });
      return [found?.tokens, found?.requests, found?.firstAt];
    };
    expect(await of(hour + 600)).toEqual([222_000, 6, hour + 600]);
    expect(await of(hour + 599)).toEqual([222_200, 8, hour + 599]);
    expect(await of(hour + 601)).toEqual([220_000, 4, hour + 3_600]);
    expect(await of(hour)).toEqual([222_200, 8, hour + 599]);
    expect(await of(hour - 5)).toEqual([222_200, 8, hour + 599]);
    expect(await of(hour - 10)).toEqual([222_220, 10, hour - 10]);
    expect(await of(day)).toEqual([222_220, 10, hour - 10]);
    expect(await of(day - 40)).toEqual([222_222, 12, day - 1]);
    expect(await of(day + 86_401)).toEqual([0, 0, undefined]);
    expect(await of(hour + 600, { until: hour + 3_600 })).toEqual([2_000, 2, hour + 600]);
    expect(await of(day, { until: day + 86_400 })).toEqual([22_220, 8, hour - 10]);
  });

  test("leaves the gateway's own requests out of the totals of account and key", async () => {
    const own = { appId: ownAppId, tags: ["gateway:shadow"] };
    for (const flush of [true, false]) {
      serve(hour + 600, 1, own);
      serve(hour + 600, 10, { tags: ["gateway:shadow"] });
      serve(hour + 7_200, 100);
      serve(hour + 7_200, 1_000, own);
      if (flush) await ledger.flush();
    }
    for (const more of [{}, { type: "key", id: "key_1" }] as const) {
      expect((await read({ since: day, until, ...more }))?.tokens).toBe(220);
      expect((await read({ since: hour + 600, until, ...more }))?.tokens).toBe(220);
      expect((await read({ since: day, until, tag: "gateway:shadow", ...more }))?.tokens).toBe(20);
    }
  });

  test("totals only given models, by id or prefix", async () => {
    await serveAround();
    const of = async (models: string[], more: Partial<TotalsOwner> = {}) => {
      const found = await read({ since: hour + 600, until, models, ...more });
      return [found?.tokens, found?.requests];
    };
    expect(await of(["gpt-*"])).toEqual([202_000, 4]);
    expect(await of(["gpt-5", "tiny"])).toEqual([220_000, 4]);
    expect(await of(["gpt"])).toEqual([0, 0]);
    expect(await of(["*"])).toEqual([222_000, 6]);
    expect(await of(["tiny"], { type: "key", id: "key_1" })).toEqual([20_000, 2]);
    expect(await of(["tiny"], { type: "key", id: "key_2" })).toEqual([0, 0]);
  });

  test("counts the accounts that belong to an organization, stored and waiting usage alike", async () => {
    const { db } = opened;
    for (const [id, organizationId] of [
      ["acct_1", "org_1"],
      ["acct_2", "org_1"],
      ["acct_3", undefined],
    ] as const) {
      await db`INSERT INTO accounts ${db(accounts.row(accountFor({ id, organizationId })))}`;
      serve(hour, 10, { accountId: id });
    }
    const organization = { type: "organization", id: "org_1" } as const;
    expect(await read(organization)).toMatchObject({ requests: 2, tokens: 20, nanoUsd: 20 });
    await ledger.flush();
    await ledger.rollUp();
    serve(hour + 1, 10, { accountId: "acct_2" });
    expect(await read(organization)).toMatchObject({ requests: 3, tokens: 30 });
    expect(await read({ ...organization, since: hour + 1, until: day + 86_400 })).toMatchObject({ requests: 1 });
    await db`UPDATE accounts SET organization_id = NULL WHERE id = 'acct_2'`;
    expect(await read(organization)).toMatchObject({ requests: 1, tokens: 10 });
  });

  test("counts more rather than less if single requests or hourly sums are gone", async () => {
    await serveAround();
    await ledger.flush();
    await ledger.rollUp();
    const store = new SqlRetentionStore(opened.db);
    await store.keepFrom("requests", day + 86_400, undefined);
    expect((await read({ since: hour + 600, until }))?.tokens).toBe(222_200);
    await store.keepFrom("hourly_usage", day + 86_400, undefined);
    await opened.db`DELETE FROM usage_rollups WHERE span = 'hour' AND start < ${day + 86_400}`;
    expect(await read({ since: hour + 600, until })).toMatchObject({ tokens: 222_220, firstAt: hour + 600 });
  });
});
