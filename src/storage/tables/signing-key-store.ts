// The keys that sign access tokens, in the database; their private parts arrive sealed.
import type { AuditEvent } from "../../domain/audit.ts";
import type { SigningKey, SigningKeyStore } from "../../domain/people/signing-key.ts";
import { type Database, writing } from "../sql/database.ts";
import { confirmCommits, requireSync } from "../sql/durable-commits.ts";
import { integer, json, table, text } from "../sql/table.ts";
import { insertAuditEvent } from "./audit-log.ts";
import { raiseRevision } from "./revisions.ts";

const signingKeys = table<SigningKey>({
  id: text,
  publicJwk: json,
  sealedPrivateJwk: text,
  createdAt: integer,
  activeAt: integer,
  retiresAt: integer,
});

export class SqlSigningKeyStore implements SigningKeyStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  listSigningKeys(nowSeconds: number): Promise<SigningKey[]> {
    return signingKeys.all(this.#db`
      SELECT * FROM signing_keys WHERE retires_at IS NULL OR retires_at > ${nowSeconds} ORDER BY created_at, id`);
  }

  async addSigningKey(
    key: SigningKey,
    predecessor: { id: string; retiresAt: number } | undefined,
    events: readonly AuditEvent[],
  ): Promise<boolean> {
    return await writing(this.#db, async (tx) => {
      if (predecessor) {
        // If several processes rotate at once, only one finds the predecessor without a successor.
        const retired: unknown[] = await tx`
          UPDATE signing_keys SET retires_at = ${predecessor.retiresAt}
          WHERE id = ${predecessor.id} AND retires_at IS NULL RETURNING id`;
        if (retired.length === 0) return false;
      } else {
        const newest: unknown[] = await tx`SELECT id FROM signing_keys WHERE retires_at IS NULL LIMIT 1`;
        if (newest.length > 0) return false;
      }
      await tx`INSERT INTO signing_keys ${tx(signingKeys.row(key))}`;
      for (const event of events) await insertAuditEvent(tx, event);
      return true;
    });
  }

  async replaceSigningKeys(
    key: SigningKey,
    at: number,
    events: (ended: readonly string[]) => readonly AuditEvent[],
  ): Promise<string[]> {
    await requireSync(this.#db);
    const ended = await writing(this.#db, async (tx) => {
      // The end is set to time 0, so that the retired keys stay invalid by every clock, even one that was set back.
      const rows: { id: string }[] = await tx`
        UPDATE signing_keys SET retires_at = 0 WHERE retires_at IS NULL OR retires_at > ${at} RETURNING id`;
      await tx`INSERT INTO signing_keys ${tx(signingKeys.row(key))}`;
      const ids = rows.map(({ id }) => id);
      for (const event of events(ids)) await insertAuditEvent(tx, event);
      // Access tokens that the retired keys signed end too, so caches of credentials have to drop these tokens.
      await raiseRevision(tx, "credentials");
      return ids;
    });
    await confirmCommits(this.#db);
    return ended;
  }

  async pruneSigningKeys(retiredBefore: number): Promise<void> {
    await writing(
      this.#db,
      async (tx) => void (await tx`DELETE FROM signing_keys WHERE retires_at < ${retiredBefore}`),
    );
  }
}
