// The installation's secret in the database: which secret is in use, and which rows depend on which secret.
import type { Database } from "../sql/database.ts";
import { addInstallation, putInstallation, readInstallation } from "../sql/installation.ts";
import { available, written } from "../sql/outage.ts";
import { contentKeyName } from "./content-key-store.ts";

/**
 * Names in the table `installation`. `first`: id of the secret of rows without a secret id; `since`: when the current
 * secret came into use.
 */
const names = { check: "secret_check", first: "first_secret", since: "secret_since" } as const;

export interface SecretState {
  /** Check value of the secret in use. Undefined for a new database, or one of an older Headrace. */
  check: string | undefined;
  /** Id of the secret under which rows without a secret id were made. */
  first: string | undefined;
  /** Unix seconds when the secret came into use. Undefined: since the beginning. */
  since: number | undefined;
}

interface DigestRenewal {
  table: "api_keys" | "app_secrets";
  id: string;
  from: string;
  to: string;
}

export interface SealedValue {
  /** The table of the value. `installation` stands for the content key. */
  table: "signing_keys" | "upstreams" | "installation" | "tool_connections" | "tool_clients" | "tool_servers";
  /** Id or name. */
  id: string;
  sealed: string;
  /** URL of an upstream; null for other values. */
  url: string | null;
}

/** Numbers of usable credentials by the id of their secret. */
export interface SecretUse {
  keys: Map<string, number>;
  appSecrets: Map<string, number>;
}

export interface KeyUnderSecret {
  id: string;
  name: string;
  account_id: string;
  last_used_at: number | string | null;
}

/** Rows of one statement. SQLite blocks the thread that serves requests. */
const rowsAtOnce = 2_000;
const renewedAtOnce = 100;

/** Returns the id of a secret. The id reveals nothing about the secret. */
export function secretIdOf(check: string): string {
  return check.slice(0, 16);
}

export class SqlSecretStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async state(): Promise<SecretState> {
    const rows: { name: string; value: string }[] = await available(this.#db`
      SELECT name, value FROM installation WHERE name IN (${names.check}, ${names.first}, ${names.since})`);
    const found = (name: string) => rows.find((row) => row.name === name)?.value;
    const since = found(names.since);
    return {
      check: found(names.check),
      first: found(names.first),
      since: since === undefined ? undefined : Number(since),
    };
  }

  /**
   * Makes `own` the secret in use, if the one before is in `accepted`. A database that records no secret was written
   * under `before`. Returns false if another secret is in use, so that one of two first starts decides.
   */
  claim(given: { own: string; accepted: readonly string[]; before: string; nowSeconds: number }): Promise<boolean> {
    const { own, accepted, before, nowSeconds } = given;
    return written(this.#db, async (tx) => {
      const inUse = (await readInstallation(tx, names.check)) ?? before;
      if (!accepted.includes(inUse)) return false;
      await addInstallation(tx, names.first, secretIdOf(inUse));
      await putInstallation(tx, names.check, own);
      if (inUse !== own) await putInstallation(tx, names.since, String(nowSeconds));
      return true;
    });
  }

  /**
   * Replaces digests of an older secret with those of the secret in use, in rows that are unchanged. Does nothing if
   * this process's secret is not in use any more. The credentials themselves stay the same.
   */
  async renewDigests(renewals: readonly DigestRenewal[], own: string): Promise<void> {
    for (let start = 0; start < renewals.length; start += renewedAtOnce) {
      const batch = renewals.slice(start, start + renewedAtOnce);
      await written(this.#db, async (tx) => {
        if ((await readInstallation(tx, names.check)) !== own) return;
        for (const { table, id, from, to } of batch) {
          await tx`
            UPDATE ${tx(table)} SET digest = ${to}, secret_id = ${secretIdOf(own)} WHERE id = ${id} AND digest = ${from}`;
        }
      });
    }
  }

  /** Counts current keys and app secrets by secret. `first` is the id of the secret of rows without a secret id. */
  async use(first: string, nowSeconds: number): Promise<SecretUse> {
    const db = this.#db;
    const keys = new Map<string, number>();
    for (let after: string | undefined = ""; after !== undefined; ) {
      const from: string = after;
      const [end]: { id: string }[] = await available(db`
        SELECT id FROM api_keys WHERE id > ${from} ORDER BY id LIMIT 1 OFFSET ${rowsAtOnce - 1}`);
      const upTo = end === undefined ? db`` : db`AND id <= ${end.id}`;
      const rows: { secret: string; rows: number | string }[] = await available(db`
        SELECT secret, count(*) AS rows FROM (
          SELECT coalesce(secret_id, CAST(${first} AS TEXT)) AS secret FROM api_keys
          WHERE id > ${from} ${upTo} AND ${this.#usable(nowSeconds)}
        ) AS found GROUP BY secret`);
      for (const row of rows) keys.set(row.secret, (keys.get(row.secret) ?? 0) + Number(row.rows));
      after = end?.id;
      await new Promise(setImmediate);
    }
    const rows: { secret: string; rows: number | string }[] = await available(db`
      SELECT secret, count(*) AS rows FROM (
        SELECT coalesce(secret_id, CAST(${first} AS TEXT)) AS secret FROM app_secrets
        WHERE expires_at IS NULL OR expires_at > ${nowSeconds}
      ) AS found GROUP BY secret`);
    return { keys, appSecrets: new Map(rows.map((row) => [row.secret, Number(row.rows)])) };
  }

  /** Lists current keys whose secret is not the one in use, most recently used first. */
  async keysUnderOthers(inUse: string, first: string, nowSeconds: number, limit: number): Promise<KeyUnderSecret[]> {
    return await available(this.#db`
      SELECT id, name, account_id, last_used_at FROM api_keys
      WHERE ${this.#usable(nowSeconds)} AND coalesce(secret_id, CAST(${first} AS TEXT)) <> ${inUse}
      ORDER BY coalesce(last_used_at, 0) DESC, id LIMIT ${limit}`);
  }

  /** Counts usable join tokens that were made before `since`. */
  async openJoinTokens(since: number, nowSeconds: number): Promise<number> {
    const [row]: { tokens: number | string }[] = await available(this.#db`
      SELECT count(*) AS tokens FROM node_join_tokens
      WHERE used_at IS NULL AND expires_at > ${nowSeconds} AND created_at <= ${since}`);
    return Number(row?.tokens ?? 0);
  }

  /** Returns long-lived sealed values. Leaves out answers and entries that live for minutes. */
  async sealedValues(nowSeconds: number): Promise<SealedValue[]> {
    const keys: { id: string; sealed: string }[] = await available(this.#db`
      SELECT id, sealed_private_jwk AS sealed FROM signing_keys WHERE retires_at IS NULL OR retires_at > ${nowSeconds}`);
    const upstreams: { id: string; sealed: string; url: string }[] = await available(this.#db`
      SELECT name AS id, sealed_api_key AS sealed, url FROM upstreams WHERE sealed_api_key IS NOT NULL`);
    const content = await available(readInstallation(this.#db, contentKeyName));
    return [
      ...keys.map((row) => ({ table: "signing_keys" as const, ...row, url: null })),
      ...(content === undefined
        ? []
        : [{ table: "installation" as const, id: contentKeyName, sealed: content, url: null }]),
      ...upstreams.map((row) => ({ table: "upstreams" as const, ...row })),
      ...(await this.#ofTools()),
    ];
  }

  /**
   * Returns credentials of MCP servers, people's tokens at these servers, and clients that were registered for them.
   */
  async #ofTools(): Promise<SealedValue[]> {
    const servers: { id: string; sealed: string; place: string }[] = await available(this.#db`
      SELECT name AS id, sealed_credentials AS sealed, place FROM tool_servers WHERE sealed_credentials IS NOT NULL`);
    const tokens: { id: string; sealed: string }[] = await available(this.#db`
      SELECT id, sealed FROM tool_connections`);
    const clients: { id: string; sealed: string }[] = await available(this.#db`
      SELECT server || ' ' || issuer AS id, sealed FROM tool_clients`);
    return [
      ...servers.map(({ id, sealed, place }) => {
        const { url } = JSON.parse(place) as { url: string };
        return { table: "tool_servers" as const, id, sealed, url };
      }),
      ...tokens.map((row) => ({ table: "tool_connections" as const, ...row, url: null })),
      ...clients.map((row) => ({ table: "tool_clients" as const, ...row, url: null })),
    ];
  }

  /**
   * Replaces a sealed value, unless it has changed meanwhile. If `by` is null, drops the value. A signing key's row
   * stays then, because of the tokens that the key signed.
   */
  async replaceSealed({ table, id, sealed }: SealedValue, by: string | null): Promise<void> {
    await written(this.#db, async (tx) => {
      if (table === "upstreams") {
        await tx`UPDATE upstreams SET sealed_api_key = ${by} WHERE name = ${id} AND sealed_api_key = ${sealed}`;
      } else if (table === "tool_servers") {
        await tx`UPDATE tool_servers SET sealed_credentials = ${by} WHERE name = ${id} AND sealed_credentials = ${sealed}`;
      } else if (table === "installation") {
        await (by === null
          ? tx`DELETE FROM installation WHERE name = ${id} AND value = ${sealed}`
          : tx`UPDATE installation SET value = ${by} WHERE name = ${id} AND value = ${sealed}`);
      } else if (table === "tool_connections" || table === "tool_clients") {
        const where = table === "tool_clients" ? tx`server || ' ' || issuer = ${id}` : tx`id = ${id}`;
        await (by === null
          ? tx`DELETE FROM ${tx(table)} WHERE ${where} AND sealed = ${sealed}`
          : tx`UPDATE ${tx(table)} SET sealed = ${by} WHERE ${where} AND sealed = ${sealed}`);
      } else if (by !== null) {
        await tx`
          UPDATE signing_keys SET sealed_private_jwk = ${by} WHERE id = ${id} AND sealed_private_jwk = ${sealed}`;
      }
    });
  }

  #usable(nowSeconds: number) {
    return this.#db`kind = 'key' AND revoked = 0 AND (revoked_at IS NULL OR revoked_at > ${nowSeconds})
      AND (expires_at IS NULL OR expires_at > ${nowSeconds})`;
  }
}
