// Accounts and API keys between their rows and their records.
import type { Account, AccountChanges } from "../../domain/account.ts";
import type { Environment } from "../../domain/api-key.ts";
import { type ByWire, byName, byWire, type KeyAmount, keyAmounts } from "../../domain/limits/amounts.ts";
import type { Role } from "../../domain/people/role.ts";
import type { ApiKeyRecord, CredentialKind, KeyChain } from "../../domain/principal.ts";
import type { Scope } from "../../domain/scope.ts";
import type { Database } from "../sql/database.ts";

/** int8 comes as a number from SQLite and as text from PostgreSQL. */
type Integer = number | string;

export interface KeyRow extends ByWire<KeyAmount, Integer | null> {
  id: string;
  kind: string;
  person_id: string | null;
  app_id: string | null;
  role: string | null;
  account_id: string;
  name: string;
  environment: string;
  digest: string;
  prefix: string;
  last4: string;
  scopes: string;
  created_by: string | null;
  parent_id: string | null;
  limit_id: string;
  created_at: Integer;
  expires_at: Integer | null;
  revoked_at: Integer | null;
  revoked: number | boolean;
  last_used_at: Integer | null;
  allowed_ips: string;
  rate_limit: Integer | null;
  rate_limit_window: Integer | null;
}

export interface AccountRow {
  id: string;
  name: string;
  tier: string;
  status: string;
  overrides: string;
  store_chats: number | boolean;
  created_at: Integer;
}

/** Policy allows fewer: a longer chain, or a ring, is a damaged database, and its keys are not found. */
const longestChain = 32;

/** A key with those that bound it and its account; undefined where any of them is missing. */
export async function readChain(
  db: Database,
  by: { digests: readonly string[] } | { id: string },
): Promise<KeyChain | undefined> {
  const [row]: KeyRow[] =
    "digests" in by
      ? await db`SELECT * FROM api_keys WHERE digest IN ${db([...by.digests])}`
      : await db`SELECT * FROM api_keys WHERE id = ${by.id}`;
  if (!row) return undefined;
  const first = keyFromRow(row);
  const keys: [ApiKeyRecord, ...ApiKeyRecord[]] = [first];
  for (let parentId = first.parentId; parentId !== null; ) {
    const [parentRow]: KeyRow[] = await db`SELECT * FROM api_keys WHERE id = ${parentId}`;
    if (!parentRow || keys.length === longestChain) return undefined;
    const parent = keyFromRow(parentRow);
    keys.push(parent);
    parentId = parent.parentId;
  }
  const account = await readAccount(db, first.accountId);
  return account && { keys, account };
}

export async function readAccount(db: Database, id: string): Promise<Account | undefined> {
  const [row]: AccountRow[] = await db`SELECT * FROM accounts WHERE id = ${id}`;
  return row && accountFromRow(row);
}

export function keyFromRow(row: KeyRow): ApiKeyRecord {
  return {
    id: row.id,
    kind: row.kind as CredentialKind,
    personId: row.person_id,
    appId: row.app_id,
    role: row.role as Role | null,
    accountId: row.account_id,
    name: row.name,
    environment: row.environment as Environment,
    digest: row.digest,
    prefix: row.prefix,
    last4: row.last4,
    scopes: words(row.scopes) as Scope[],
    createdBy: row.created_by,
    parentId: row.parent_id,
    limitId: row.limit_id,
    createdAt: Number(row.created_at),
    expiresAt: integer(row.expires_at),
    revokedAt: integer(row.revoked_at),
    revoked: Boolean(row.revoked),
    lastUsedAt: integer(row.last_used_at),
    allowedIps: words(row.allowed_ips),
    rateLimit: integer(row.rate_limit),
    rateLimitWindow: integer(row.rate_limit_window),
    ...byName(keyAmounts, ({ wire }) => integer(row[wire])),
  };
}

export function keyToRow(key: ApiKeyRecord): KeyRow {
  return {
    id: key.id,
    kind: key.kind,
    person_id: key.personId,
    app_id: key.appId,
    role: key.role,
    account_id: key.accountId,
    name: key.name,
    environment: key.environment,
    digest: key.digest,
    prefix: key.prefix,
    last4: key.last4,
    scopes: key.scopes.join(" "),
    created_by: key.createdBy,
    parent_id: key.parentId,
    limit_id: key.limitId,
    created_at: key.createdAt,
    expires_at: key.expiresAt,
    revoked_at: key.revokedAt,
    revoked: key.revoked ? 1 : 0,
    last_used_at: key.lastUsedAt,
    allowed_ips: key.allowedIps.join(" "),
    rate_limit: key.rateLimit,
    rate_limit_window: key.rateLimitWindow,
    ...byWire(keyAmounts, ({ name }) => key[name]),
  };
}

export function accountFromRow(row: AccountRow): Account {
  return {
    id: row.id,
    name: row.name,
    tier: row.tier,
    status: row.status as Account["status"],
    overrides: JSON.parse(row.overrides) as Account["overrides"],
    storeChats: Boolean(row.store_chats),
    createdAt: Number(row.created_at),
  };
}

/** An override that is undefined is none, and not in the row. */
export function accountToRow(
  account: Omit<Account, "overrides"> & Required<Pick<AccountChanges, "overrides">>,
): AccountRow {
  return {
    id: account.id,
    name: account.name,
    tier: account.tier,
    status: account.status,
    overrides: JSON.stringify(account.overrides),
    store_chats: account.storeChats ? 1 : 0,
    created_at: account.createdAt,
  };
}

export function integer(value: Integer | null): number | null {
  return value === null ? null : Number(value);
}

export function words(text: string): string[] {
  return text === "" ? [] : text.split(" ");
}
