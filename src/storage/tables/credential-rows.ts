// Converts accounts and API keys between rows and records.
import type { Account } from "../../domain/account.ts";
import { byName, keyAmounts } from "../../domain/limits/amounts.ts";
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

export const accounts = table<Account>({
  id: text,
  name: text,
  tier: text,
  status: text,
  overrides: json,
  storeChats: flag,
  tools: json,
  createdAt: integer,
});

const appTools = table<Pick<App, "tools">>({ tools: json });

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
  const keys: [ApiKeyRecord, ...ApiKeyRecord[]] = [await withinApp(db, first)];
  for (let parentId = first.parentId; parentId !== null; ) {
    const parent = await readKey(db, parentId);
    if (!parent || keys.length === maxChainLength) return undefined;
    keys.push(parent);
    parentId = parent.parentId;
  }
  const account = await readAccount(db, first.accountId);
  return account && { keys, account };
}

/** Reduces the tools of a person's grant to those that the app may use. Other credentials stay unchanged. */
async function withinApp(db: Database, key: ApiKeyRecord): Promise<ApiKeyRecord> {
  if (key.kind !== "grant") return key;
  const app = await appTools.first(db`SELECT tools FROM apps WHERE id = ${key.appId}`);
  if (!app?.tools) return key;
  return { ...key, tools: key.tools ? commonTools(key.tools, app.tools) : app.tools };
}

/**
 * Queries the ids under which a person's usage in an account and environment is recorded. They are the membership, the
 * person's own keys and the allowed apps, including ended ones.
 */
export function credentialsOf(
  db: Database,
  { accountId, environment, personId }: { accountId: string; environment: string; personId: string },
) {
  return db`(
    SELECT id FROM api_keys WHERE account_id = ${accountId} AND environment = ${environment} AND person_id = ${personId})`;
}

export function readKey(db: Database, id: string): Promise<ApiKeyRecord | undefined> {
  return apiKeys.first(db`SELECT * FROM api_keys WHERE id = ${id}`);
}

export function readAccount(db: Database, id: string): Promise<Account | undefined> {
  return accounts.first(db`SELECT * FROM accounts WHERE id = ${id}`);
}
