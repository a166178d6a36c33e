// Accounts and API keys in the database.
import type { Environment } from "../domain/api-key.ts";
import type { ApiKeyRecord, KeyStore } from "../domain/principal.ts";
import type { Scope } from "../domain/scope.ts";
import type { Database } from "./database.ts";

interface KeyRow {
  id: string;
  account_id: string;
  name: string;
  environment: Environment;
  digest: string;
  prefix: string;
  last4: string;
  scopes: string;
  created_at: number | string;
  expires_at: number | string | null;
  revoked_at: number | string | null;
}

export class SqlKeyStore implements KeyStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async findKeyByDigest(digest: string): Promise<ApiKeyRecord | undefined> {
    const [row]: KeyRow[] = await this.#db`SELECT * FROM api_keys WHERE digest = ${digest}`;
    return row && keyFromRow(row);
  }

  async firstKey(environment: Environment): Promise<ApiKeyRecord | undefined> {
    const [row]: KeyRow[] = await this.#db`
      SELECT * FROM api_keys WHERE environment = ${environment} ORDER BY created_at, id LIMIT 1`;
    return row && keyFromRow(row);
  }

  async insertKey(key: ApiKeyRecord): Promise<void> {
    await this.#db`
      INSERT INTO api_keys
        (id, account_id, name, environment, digest, prefix, last4, scopes, created_at, expires_at, revoked_at)
      VALUES (${key.id}, ${key.accountId}, ${key.name}, ${key.environment}, ${key.digest}, ${key.prefix}, ${key.last4},
        ${key.scopes.join(" ")}, ${key.createdAt}, ${key.expiresAt}, ${key.revokedAt})`;
  }

  /** The installation's first account, made when missing. */
  async ensureFirstAccount(nowSeconds: number): Promise<string> {
    const [row]: { id: string }[] = await this.#db`SELECT id FROM accounts ORDER BY created_at, id LIMIT 1`;
    if (row) return row.id;
    const id = `acct_${Bun.randomUUIDv7()}`;
    await this
      .#db`INSERT INTO accounts (id, name, tier, created_at) VALUES (${id}, 'First account', 'enterprise', ${nowSeconds})`;
    return id;
  }
}

function keyFromRow(row: KeyRow): ApiKeyRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    environment: row.environment,
    digest: row.digest,
    prefix: row.prefix,
    last4: row.last4,
    scopes: row.scopes.split(" ") as Scope[],
    createdAt: Number(row.created_at),
    expiresAt: row.expires_at === null ? null : Number(row.expires_at),
    revokedAt: row.revoked_at === null ? null : Number(row.revoked_at),
  };
}
