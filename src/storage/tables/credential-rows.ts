// Converts accounts and API keys between rows and records.
import type { Account } from "../../domain/account.ts";
import { accountAmounts, byName, keyAmounts } from "../../domain/limits/amounts.ts";
import type { Organization } from "../../domain/organization.ts";
import type { App } from "../../domain/people/app.ts";
import type { ApiKeyRecord, KeyChain } from "../../domain/principal.ts";
import { commonTools } from "../../domain/tools/tool-access.ts";
import type { Database } from "../sql/database.ts";
import { flag, integer, json, named, table, text, words } from "../sql/table.ts";

export const apiKeys = table<ApiKeyRecord>({
  id: text,
  kind: text,
  personId: text,
  appId: text,
  role: text,
  seesAllUsage: flag,
  accountId: text,
  name: text,
  environment: text,
  digest: text,
  prefix: text,
  last4: text,
  scopes: words,
  createdBy: text,
  parentId: text,
  limitId: text,
  createdAt: integer,
  expiresAt: integer,
  revokedAt: integer,
  revoked: flag,
  lastUsedAt: integer,
  suspendedBy: text,
  allowedIps: words,
  rateLimit: integer,
  rateLimitWindow: integer,
  quotas: json,
  models: json,
  tools: json,
  neverLeaves: flag,
  priority: text,
  responseCache: text,
  tags: json,
  note: text,
  ...byName(keyAmounts, ({ wire }) => named(wire, integer)),
});

export const accounts = table<Omit<Account, "organization">>({
  id: text,
  name: text,
  tier: text,
  status: text,
  overrides: json,
  raises: { write: (raises) => (raises?.length ? JSON.stringify(raises) : null), read: fromJson },
  storeChats: flag,
  tools: json,
  createdAt: integer,
  endUsers: { write: (budgets) => (budgets ? JSON.stringify(budgets) : null), read: fromJson },
  organizationId: { write: (id) => id ?? null, read: (id) => id ?? undefined },
});

export const organizations = table<Organization>({
  id: text,
  name: text,
  ...byName(accountAmounts, ({ wire }) => named(wire, integer)),
  quotas: json,
  createdAt: integer,
  membersRevision: integer,
});

/** Reads JSON; null becomes undefined. */
function fromJson(value: unknown): unknown {
  return typeof value === "string" ? JSON.parse(value) : undefined;
}

/** The facts of a credential's person and app that its chain depends on. */
const owners = table<Pick<App, "tools"> & { suspendedOwner: "person" | "app" | null }>({
  tools: json,
  suspendedOwner: text,
});

/**
 * Maximum keys in a chain. Policy allows fewer. A longer chain, or a cycle, means a damaged database, and its keys are
 * not found.
 */
const maxChainLength = 32;

/** Reads a key, its account, and the keys that limit it. Undefined if any is missing. */
export async function readChain(
  db: Database,
  by: { digests: readonly string[] } | { id: string },
): Promise<KeyChain | undefined> {
  const first = await ("digests" in by
    ? apiKeys.first(db`SELECT * FROM api_keys WHERE digest IN ${db([...by.digests])}`)
    : readKey(db, by.id));
  if (!first) return undefined;
  const keys: [ApiKeyRecord, ...ApiKeyRecord[]] = [await withOwners(db, first)];
  for (let parentId = first.parentId; parentId !== null; ) {
    const parent = await readKey(db, parentId);
    if (!parent || keys.length === maxChainLength) return undefined;
    keys.push(parent);
    parentId = parent.parentId;
  }
  const account = await readAccount(db, first.accountId);
  return account && { keys, account };
}

/**
 * Reduces the tools of a person's grant to those that the app may use, and marks the credential of a suspended person or
 * app. All credentials of a chain belong to the same person.
 */
async function withOwners(db: Database, key: ApiKeyRecord): Promise<ApiKeyRecord> {
  if (key.personId === null) return key;
  const app = key.kind === "grant" ? key.appId : null;
  const found = await owners.first(db`
    SELECT COALESCE((SELECT tools FROM apps WHERE id = ${app}), 'null') AS tools,
      CASE
        WHEN EXISTS (SELECT 1 FROM people WHERE id = ${key.personId} AND suspended_at IS NOT NULL) THEN 'person'
        WHEN EXISTS (SELECT 1 FROM apps WHERE id = ${app} AND suspended_by IS NOT NULL) THEN 'app'
        WHEN EXISTS (SELECT 1 FROM outside_clients WHERE id = ${app} AND suspended_by IS NOT NULL) THEN 'app'
      END AS suspended_owner`);
  const { tools = null, suspendedOwner = null } = found ?? {};
  const allowed = tools && key.tools ? commonTools(key.tools, tools) : (tools ?? key.tools);
  return { ...key, tools: allowed, suspendedBy: key.suspendedBy ?? suspendedOwner };
}

/**
 * Queries the ids under which a person's usage is recorded in an account, or in all accounts if `accountId` is null. They are the membership, the
 * person's own keys and the allowed apps, including ended ones.
 */
export function credentialsOf(
  db: Database,
  { accountId, environment, personId }: { accountId: string | null; environment: string; personId: string },
) {
  return db`(
    SELECT id FROM api_keys WHERE ${accountId === null ? db`` : db`account_id = ${accountId} AND`}
      environment = ${environment} AND person_id = ${personId})`;
}

/** Queries the ids of the accounts that belong to an organization. */
export function accountsOf(db: Database, organizationId: string) {
  return db`(SELECT id FROM accounts WHERE organization_id = ${organizationId})`;
}

export function readKey(db: Database, id: string): Promise<ApiKeyRecord | undefined> {
  return apiKeys.first(db`SELECT * FROM api_keys WHERE id = ${id}`);
}

/** Reads an account, with its organization if it belongs to one. */
export async function readAccount(db: Database, id: string): Promise<Account | undefined> {
  const account = await accounts.first(db`SELECT * FROM accounts WHERE id = ${id}`);
  if (account?.organizationId === undefined) return account;
  return { ...account, organization: await readOrganization(db, account.organizationId) };
}

export function readOrganization(db: Database, id: string): Promise<Organization | undefined> {
  return organizations.first(db`SELECT * FROM organizations WHERE id = ${id}`);
}
