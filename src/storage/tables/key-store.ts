// API keys in the database.
import type { Environment } from "../../domain/api-key.ts";
import type { AuditEvent } from "../../domain/audit.ts";
import { byName, keyAmounts } from "../../domain/limits/amounts.ts";
import {
  type ApiKeyRecord,
  hasEnded,
  type KeyChain,
  type KeyChanges,
  type KeyStore,
  keyStatus,
  ownSuspender,
  type SuspensionChange,
  suspenderAfter,
} from "../../domain/principal.ts";
import { type Database, dialectOf, writing } from "../sql/database.ts";
import { available } from "../sql/outage.ts";
import { lookupsOf } from "../sql/postgres-pool.ts";
import { changeCredentials } from "./credential-change.ts";
import { apiKeys, readChain, readKey } from "./credential-rows.ts";
import { raiseRevision, readRevision } from "./revisions.ts";

const touchAtOnce = 200;
const findAtOnce = 500;

interface SqlKeyStoreOptions {
  secretId?: string | null;
  maxSuspended?: number;
}

export class SqlKeyStore implements KeyStore {
  readonly #db: Database;
  readonly #lookups: Database;
  readonly #secretId: string | null;
  readonly #maxSuspended: number;

  /**
   * `secretId`: the id of the secret under which the digests of new keys are made. `maxSuspended`: how many of the
   * latest suspensions of keys, and how many of apps, `listSuspended` reads. An account can suspend any number of keys.
   */
  constructor(db: Database, { secretId = null, maxSuspended = 5_000 }: SqlKeyStoreOptions = {}) {
    this.#db = db;
    this.#maxSuspended = maxSuspended;
    this.#secretId = secretId;
    this.#lookups = lookupsOf(db);
  }

  findChainByDigest(digest: string, ...older: string[]): Promise<KeyChain | undefined> {
    return available(readChain(this.#lookups, { digests: [digest, ...older] }));
  }

  findChainById(id: string): Promise<KeyChain | undefined> {
    return available(readChain(this.#lookups, { id }));
  }

  async findKeys(ids: readonly string[]): Promise<ApiKeyRecord[]> {
    const found: ApiKeyRecord[] = [];
    for (let start = 0; start < ids.length; start += findAtOnce) {
      const part = ids.slice(start, start + findAtOnce);
      found.push(...(await available(apiKeys.all(this.#db`SELECT * FROM api_keys WHERE id IN ${this.#db(part)}`))));
    }
    return found;
  }

  firstKey(environment: Environment): Promise<ApiKeyRecord | undefined> {
    return readFirstKey(this.#db, environment);
  }

  /** Lists keys ordered by id, which begins with the time. */
  listKeys(
    { accountId, environment, personId }: { accountId: string; environment: Environment; personId?: string },
    { after, limit }: { after: string | undefined; limit: number },
  ): Promise<ApiKeyRecord[]> {
    const db = this.#db;
    // Only ids of keys have this prefix, so a person's grants are not read.
    const rows = db`
      SELECT * FROM api_keys WHERE account_id = ${accountId} AND environment = ${environment} AND kind = 'key'
      ${personId === undefined ? db`` : db`AND person_id = ${personId}`}
      AND id > 'key_' AND id < ${after ?? "key`"}
      ORDER BY id DESC LIMIT ${limit}`;
    return available(apiKeys.all(rows));
  }

  async insertKey(key: ApiKeyRecord, event: AuditEvent): Promise<void> {
    await changeCredentials(this.#db, event, async (tx) => {
      await tx`INSERT INTO api_keys ${tx(this.#newRow(key))}`;
      return { result: undefined, changed: "added" };
    });
  }

  insertFirstKey(key: ApiKeyRecord, event: AuditEvent): Promise<ApiKeyRecord> {
    return changeCredentials(this.#db, event, async (tx) => {
      const first = await readFirstKey(tx, key.environment);
      if (first) return { result: first, changed: false };
      await tx`INSERT INTO api_keys ${tx(this.#newRow(key))}`;
      return { result: key, changed: "added" };
    });
  }

  /** Updates a key. If the key had ended by the time of the event, returns it unchanged and records no event. */
  updateKey(id: string, changes: KeyChanges, event: AuditEvent): Promise<ApiKeyRecord | undefined> {
    return changeCredentials(this.#db, event, async (tx) => {
      const current = await readKey(tx, id);
      if (!current) return { result: undefined, changed: false };
      // A revocation may be brought forward until it is final. Other changes require a key that has not ended.
      const isFinal = current.revoked || keyStatus(current, event.at) === "expired";
      if (changes.revokedAt == null ? hasEnded(current, event.at) : isFinal) return { result: current, changed: false };
      const { revokedAt: wanted, ...others } = changes;
      const revokedAt = earlier(current.revokedAt, wanted ?? null);
      const updated = { ...current, ...others, revokedAt, revoked: isDue(revokedAt, event.at) };
      await writeKey(tx, updated);
      return { result: updated, changed: true };
    });
  }

  setSuspended(id: string, change: SuspensionChange, event: AuditEvent): Promise<ApiKeyRecord | undefined> {
    return changeCredentials(this.#db, event, async (tx) => {
      const current = await readKey(tx, id);
      if (!current || hasEnded(current, event.at)) return { result: current, changed: false };
      const suspendedBy = suspenderAfter(ownSuspender(current), change);
      if (suspendedBy === current.suspendedBy) return { result: current, changed: false };
      await tx`UPDATE api_keys SET suspended_by = ${suspendedBy} WHERE id = ${id}`;
      return { result: { ...current, suspendedBy }, changed: true };
    });
  }

  /** Adds a successor with the old key's current settings, and schedules the old key's revocation. */
  rotateKey(
    id: string,
    successor: ApiKeyRecord,
    revokeAt: number,
    event: AuditEvent,
  ): Promise<ApiKeyRecord | undefined> {
    return changeCredentials(this.#db, event, async (tx) => {
      const current = await readKey(tx, id);
      // If a schedule began the rotation, its successor can be fetched only once, so the row of the due rotation is
      // deleted.
      const due = await tx`DELETE FROM due_rotations WHERE key_id = ${id} RETURNING key_id`;
      const isEnding = current !== undefined && current.revokedAt !== null && due.length === 0;
      if (!current || isEnding || keyStatus(current, event.at) !== "active") {
        return { result: undefined, changed: false };
      }
      const { digest, prefix, last4, createdAt, createdBy } = successor;
      const added: ApiKeyRecord = {
        ...current,
        ...{ id: successor.id, digest, prefix, last4, createdAt, createdBy, lastUsedAt: null },
        revokedAt: null,
      };
      await tx`INSERT INTO api_keys ${tx(this.#newRow(added))}`;
      await tx`UPDATE api_keys SET parent_id = ${added.id} WHERE parent_id = ${id}`;
      // The files of an operator that manage the old key manage its successor.
      await tx`
        UPDATE declared_objects SET target_id = ${added.id}, changed_at = ${event.at}
        WHERE kind = 'key' AND target_id = ${id}`;
      const endsAt = earlier(current.revokedAt, revokeAt);
      await writeKey(tx, { ...current, revokedAt: endsAt, revoked: isDue(endsAt, event.at) });
      return { result: added, changed: true };
    });
  }

  async endDue(nowSeconds: number): Promise<void> {
    await writing(this.#db, async (tx) => {
      const ended = await tx`
        UPDATE api_keys SET revoked = 1 WHERE revoked = 0 AND revoked_at <= ${nowSeconds} RETURNING id`;
      if (ended.length > 0) await raiseRevision(tx, "credentials");
    });
  }

  async touchKeys(lastUsed: ReadonlyMap<string, number>): Promise<void> {
    const used = [...lastUsed];
    // Updates in pieces, so that other work runs between two statements, however many keys there are.
    for (let start = 0; start < used.length; start += touchAtOnce) {
      const list = JSON.stringify(used.slice(start, start + touchAtOnce));
      await writing(this.#db, async (tx) => {
        // One JSON parameter has all keys, because two parameters for each key cost half as much again.
        const rows =
          dialectOf(tx) === "postgres"
            ? tx`json_array_elements(CAST(CAST(${list} AS TEXT) AS JSON))`
            : tx`json_each(${list})`;
        await tx`
          UPDATE api_keys SET last_used_at = used.used_at
          FROM (SELECT value ->> 0 AS key_id, CAST(value ->> 1 AS BIGINT) AS used_at FROM ${rows}) AS used
          WHERE id = used.key_id AND (last_used_at IS NULL OR last_used_at < used.used_at)`;
      });
    }
  }

  /** Follows the makers of keys, because a rotated key and one that a key made have a key as their maker. */
  async descendFrom(ids: readonly string[], personId: string): Promise<boolean> {
    const db = this.#lookups;
    const rows: unknown[] = await available(db`
      WITH RECURSIVE makers (id, created_by) AS (
        SELECT id, created_by FROM api_keys WHERE id IN ${db([...ids])}
        UNION SELECT api_keys.id, api_keys.created_by FROM api_keys JOIN makers ON api_keys.id = makers.created_by)
      SELECT id FROM makers WHERE created_by = ${personId} LIMIT 1`);
    return rows.length > 0;
  }

  async listSuspended(): Promise<string[]> {
    const rows: { id: string }[] = await this.#lookups`
      SELECT id FROM accounts WHERE status <> 'active'
      UNION ALL SELECT id FROM people WHERE suspended_at IS NOT NULL
      UNION ALL SELECT api_keys.id FROM (
          SELECT target_id FROM audit_log WHERE action = 'key.suspended' ORDER BY id DESC LIMIT ${this.#maxSuspended}
        ) AS newest CROSS JOIN api_keys WHERE api_keys.id = target_id AND suspended_by IS NOT NULL AND revoked = 0
      UNION ALL SELECT apps.id FROM (
          SELECT target_id FROM audit_log WHERE action = 'app.suspended' ORDER BY id DESC LIMIT ${this.#maxSuspended}
        ) AS newest CROSS JOIN apps WHERE apps.id = target_id AND suspended_by IS NOT NULL
      UNION ALL SELECT id FROM outside_clients WHERE suspended_by IS NOT NULL`;
    return rows.map(({ id }) => id);
  }

  credentialRevision(): Promise<number> {
    return readRevision(this.#lookups, "credentials");
  }

  #newRow(key: ApiKeyRecord) {
    return { ...apiKeys.row(key), secret_id: this.#secretId };
  }
}

function readFirstKey(db: Database, environment: Environment): Promise<ApiKeyRecord | undefined> {
  return apiKeys.first(db`
    SELECT * FROM api_keys WHERE limit_id = (
      SELECT limit_id FROM api_keys
      WHERE environment = ${environment} AND kind = 'key' AND created_by IS NULL AND scopes NOT LIKE '%admin:manage%'
      ORDER BY created_at, id LIMIT 1
    ) ORDER BY created_at DESC, id DESC LIMIT 1`);
}

/** The changeable members of a key. Other members never change, except suspension and the time of the last use. */
const changeable = Object.keys({
  ...{ name: true, scopes: true, expiresAt: true, revokedAt: true, revoked: true, allowedIps: true },
  ...{ rateLimit: true, rateLimitWindow: true, quotas: true, ...byName(keyAmounts, () => true as const) },
  ...{ models: true, tools: true, neverLeaves: true, priority: true, responseCache: true, tags: true, note: true },
} satisfies Record<keyof KeyChanges | "revoked", true>) as (keyof KeyChanges | "revoked")[];

async function writeKey(tx: Database, key: ApiKeyRecord): Promise<void> {
  const row = apiKeys.part(key, ...changeable);
  await tx`UPDATE api_keys SET ${tx(row)} WHERE id = ${key.id}`;
}

/** Reports whether a revocation is due. A due revocation is final, independent of any clock. */
function isDue(revokedAt: number | null, nowSeconds: number): boolean {
  return revokedAt !== null && revokedAt <= nowSeconds;
}

/** Returns the earlier of two revocation times, because a scheduled revocation is never undone or postponed. */
function earlier(first: number | null, second: number | null): number | null {
  if (first === null || second === null) return first ?? second;
  return Math.min(first, second);
}
