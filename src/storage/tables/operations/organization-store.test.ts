// The store of organizations in real databases of both kinds: their limits come with each credential of their accounts.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import { accountFor, keyRecordFor } from "../../../../tests/support/principal.ts";
import type { AuditEvent } from "../../../domain/audit.ts";
import type { Organization } from "../../../domain/organization.ts";
import { accounts, apiKeys } from "../credential-rows.ts";
import { SqlKeyStore } from "../key-store.ts";
import { SqlOrganizationStore } from "./organization-store.ts";

const group: Organization = {
  ...{
    id: "org_1",
    name: "Ünï",
    monthlyTokens: 7_000_000_000,
    monthlySpend: 99.5,
    createdAt: 1_800_000_000,
    membersRevision: 0,
  },
  quotas: [{ unit: "usd", amount: 2.5, per: "5h", window: "rolling", models: ["gpt-*"] }],
};

onEachDatabase((databases) => {
  let opened: TestDatabase;
  let store: SqlOrganizationStore;
  let keys: SqlKeyStore;

  beforeEach(async () => {
    opened = await databases.open();
    const { db } = opened;
    [store, keys] = [new SqlOrganizationStore(db), new SqlKeyStore(db)];
    await db`INSERT INTO accounts ${db(["acct_1", "acct_2"].map((id) => accounts.row(accountFor({ id }))))}`;
    await db`INSERT INTO api_keys ${db(apiKeys.row(keyRecordFor({ id: "key_1", accountId: "acct_1" })))}`;
    await store.insertOrganization(group, event());
  });

  afterEach(() => opened.close());

  let events = 0;
  function event(): AuditEvent {
    return {
      ...{ id: `audit_${++events}`, at: 1_800_000_000, action: "organization.updated", actor: { type: "operator" } },
      ...{ accountId: null, targetId: null, clientAddress: null, requestId: null, detail: {} },
    };
  }

  test("reads an organization with the credentials of its accounts, and raises the revision with each change", async () => {
    expect((await keys.findChainById("key_1"))?.account.organization).toBeUndefined();
    let revision = await keys.credentialRevision();
    expect(await store.moveAccount("acct_1", "org_1", event())).toEqual({ before: null });
    expect((await keys.findChainById("key_1"))?.account).toMatchObject({
      organizationId: "org_1",
      organization: { ...group, membersRevision: 1 },
    });
    await store.updateOrganization("org_1", { monthlySpend: null, quotas: [] }, event());
    expect((await keys.findChainById("key_1"))?.account.organization).toEqual({
      ...{ ...group, monthlySpend: null, quotas: [], membersRevision: 1 },
    });
    expect(await keys.credentialRevision()).toBe(revision + 2);
    revision += 2;
    expect(await store.moveAccount("acct_1", "org_1", event())).toBeUndefined();
    expect(await keys.credentialRevision()).toBe(revision);
    expect(await store.moveAccount("acct_1", null, event())).toMatchObject({ before: { id: "org_1" } });
    expect((await keys.findChainById("key_1"))?.account.organization).toBeUndefined();
  });

  test("lists and counts accounts by page, and deletes only an organization without accounts", async () => {
    await store.insertOrganization({ ...group, id: "org_2" }, event());
    for (const id of ["acct_1", "acct_2"]) await store.moveAccount(id, "org_1", event());
    const page = async (after?: string) =>
      (await store.listAccountsOf("org_1", { after, limit: 1 })).map(({ id }) => id);
    expect([await page(), await page("acct_1"), await page("acct_2")]).toEqual([["acct_1"], ["acct_2"], []]);
    expect([...(await store.countAccountsOf(["org_1", "org_2"]))]).toEqual([["org_1", 2]]);
    expect(await store.deleteOrganization("org_1", event())).toBe(false);
    expect(await store.deleteOrganization("org_2", event())).toBe(true);
    expect((await store.listOrganizations({ after: undefined, limit: 5 })).map(({ id }) => id)).toEqual(["org_1"]);
  });

  test("moves no account into an organization that does not exist, and no unknown account", async () => {
    expect(await store.moveAccount("acct_1", "org_none", event())).toBeUndefined();
    expect(await store.moveAccount("acct_none", "org_1", event())).toBeUndefined();
  });
});
