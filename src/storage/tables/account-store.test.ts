// Accounts and tiers in real databases of both kinds: each change has its audit event and raises the revision.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import { tierFor } from "../../../tests/support/principal.ts";
import type { Account } from "../../domain/account.ts";
import type { AuditEvent } from "../../domain/audit.ts";
import type { Database } from "../sql/database.ts";
import { SqlAccountStore } from "./account-store.ts";
import { SqlAuditLog } from "./audit-log.ts";
import { SqlKeyStore } from "./key-store.ts";

let opened: TestDatabase;
let db: Database;
let accounts: SqlAccountStore;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
    accounts = new SqlAccountStore(db);
  });

  afterEach(async () => {
    await opened.close();
  });

  let events = 0;
  function event(): AuditEvent {
    events += 1;
    return {
      id: `audit_${String(events).padStart(6, "0")}`,
      at: 1_800_000_000,
      action: "account.updated",
      actor: { type: "operator" },
      accountId: null,
      targetId: null,
      clientAddress: null,
      requestId: null,
      detail: {},
    };
  }

  const account = (id: string, more: Partial<Account> = {}): Account => ({
    id,
    name: "Ünï & Söhne",
    tier: "pro",
    status: "active",
    overrides: {},
    storeChats: false,
    tools: null,
    createdAt: 1_800_000_000,
    ...more,
  });

  const tier = tierFor({
    ...{ name: "gold", requestsPerMinute: 60, monthlyTokens: 7_000_000_000, monthlySpend: 99.5 },
    quotas: [{ unit: "usd", amount: 2.5, per: "5h", window: "rolling", models: ["gpt-*"] }],
    environments: ["live", "test"],
  });

  async function recorded(action: () => Promise<unknown>): Promise<{ events: number; revisions: number }> {
    const keys = new SqlKeyStore(db);
    const count = async () => (await new SqlAuditLog(db).list({}, { after: undefined, limit: 100 })).length;
    const before = { events: await count(), revision: await keys.credentialRevision() };
    await action();
    return { events: (await count()) - before.events, revisions: (await keys.credentialRevision()) - before.revision };
  }

  describe("stored accounts", () => {
    test("creates the first account once, in the Enterprise tier, with an audit event", async () => {
      const id = await accounts.ensureFirstAccount(1_800_000_000);
      expect(await accounts.ensureFirstAccount(1_900_000_000)).toBe(id);
      expect(await accounts.listAccounts({ after: undefined, limit: 9 })).toEqual([
        account(id, { name: "First account", tier: "enterprise" }),
      ]);
      const [first, ...others] = await new SqlAuditLog(db).list({}, { after: undefined, limit: 9 });
      expect(first).toMatchObject({
        action: "account.created",
        actor: { type: "system" },
        targetId: id,
        accountId: id,
      });
      expect(others).toEqual([]);
    });

    test("finds an account with every stored field, and distinguishes an override of null from none", async () => {
      const stored = account("acct_1", { status: "suspended", overrides: { monthlySpend: null }, storeChats: true });
      await accounts.insertAccount(stored, event());
      const found = await accounts.findAccount("acct_1");
      expect(found).toEqual(stored);
      expect(Object.keys(found?.overrides ?? {})).toEqual(["monthlySpend"]);
      expect(await accounts.findAccount("acct_2")).toBeUndefined();
    });

    test("lists accounts by creation, page by page", async () => {
      for (const id of ["acct_1", "acct_2", "acct_3"]) await accounts.insertAccount(account(id), event());
      const ids = async (after: string | undefined) =>
        (await accounts.listAccounts({ after, limit: 2 })).map((found) => found.id);
      expect(await ids(undefined)).toEqual(["acct_1", "acct_2"]);
      expect(await ids("acct_2")).toEqual(["acct_3"]);
    });

    test("finds accounts by a part of their name in either case, or by their id", async () => {
      const names = ["Web shop", "Ünal 100%", "Web_shop", "Books"];
      for (const [index, name] of names.entries())
        await accounts.insertAccount(account(`acct_${index}`, { name }), event());
      const named = async (search: string) =>
        (await accounts.listAccounts({ after: undefined, limit: 9, search })).map(({ name }) => name);
      expect(await named("web")).toEqual(["Web shop", "Web_shop"]);
      expect(await named("b_s")).toEqual(["Web_shop"]);
      expect(await named("0%")).toEqual(["Ünal 100%"]);
      expect(await named("Ün")).toEqual(["Ünal 100%"]);
      expect(await named("acct_3")).toEqual(["Books"]);
      expect(await named("\\")).toEqual([]);
    });

    test("changes only the named fields of an account, with event and revision, and no unknown account", async () => {
      await accounts.insertAccount(account("acct_1"), event());
      const changes = { tier: "free", overrides: { monthlyTokens: 5, monthlySpend: null } } as const;
      expect(await recorded(() => accounts.updateAccount("acct_1", changes, event()))).toEqual({
        events: 1,
        revisions: 1,
      });
      expect(await accounts.findAccount("acct_1")).toEqual(account("acct_1", changes));
      const unknown = async () => expect(await accounts.updateAccount("acct_9", changes, event())).toBeUndefined();
      expect(await recorded(unknown)).toEqual({ events: 0, revisions: 0 });
    });

    test("overrides each amount of an account separately, so that concurrent changes both hold", async () => {
      await accounts.insertAccount(account("acct_1", { overrides: { monthlySpend: 1 } }), event());
      await Promise.all([
        accounts.updateAccount("acct_1", { overrides: { monthlyTokens: 5 } }, event()),
        accounts.updateAccount("acct_1", { overrides: { monthlySpend: null } }, event()),
      ]);
      expect((await accounts.findAccount("acct_1"))?.overrides).toStrictEqual({ monthlyTokens: 5, monthlySpend: null });
      const updated = await accounts.updateAccount("acct_1", { overrides: { monthlyTokens: undefined } }, event());
      expect(updated?.overrides).toStrictEqual({ monthlySpend: null });
      expect(await accounts.findAccount("acct_1")).toEqual(account("acct_1", { overrides: { monthlySpend: null } }));
    });
  });

  describe("stored tiers", () => {
    test("adds, replaces and deletes tiers by name, with event and revision", async () => {
      expect(await recorded(() => accounts.putTier(tier, event()))).toEqual({ events: 1, revisions: 1 });
      expect(await accounts.listTiers()).toEqual([tier]);
      const changed = { ...tier, requestsPerMinute: null, environments: [] };
      await accounts.putTier(changed, event());
      expect(await accounts.listTiers()).toEqual([changed]);
      const deletion = async () => expect(await accounts.deleteTier("gold", event())).toBe(true);
      expect(await recorded(deletion)).toEqual({ events: 1, revisions: 1 });
      const again = async () => expect(await accounts.deleteTier("gold", event())).toBe(false);
      expect(await recorded(again)).toEqual({ events: 0, revisions: 0 });
      expect(await accounts.listTiers()).toEqual([]);
    });

    test("counts the accounts of each tier", async () => {
      for (const id of ["acct_1", "acct_2"]) await accounts.insertAccount(account(id), event());
      expect(await accounts.countAccountsOfTier("pro")).toBe(2);
      expect(await accounts.countAccountsOfTier("gold")).toBe(0);
    });
  });
});
