// The keys that sign access tokens, in the database; their private parts arrive sealed.
import type { SigningKey, SigningKeyStore } from "../domain/signing-key.ts";
import { type Database, writing } from "./database.ts";

interface SigningKeyRow {
  id: string;
  public_jwk: string;
  sealed_private_jwk: string;
  created_at: number | string;
  active_at: number | string;
  retires_at: number | string | null;
}

export class SqlSigningKeyStore implements SigningKeyStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async listSigningKeys(nowSeconds: number): Promise<SigningKey[]> {
    const rows: SigningKeyRow[] = await this.#db`
      SELECT * FROM signing_keys WHERE retires_at IS NULL OR retires_at > ${nowSeconds} ORDER BY created_at, id`;
    return rows.map(fromRow);
  }

  async addSigningKey(key: SigningKey, predecessor: { id: string; retiresAt: number } | undefined): Promise<boolean> {
    return await writing(this.#db, async (tx) => {
      if (predecessor) {
        // Of several processes only one finds the predecessor still without a successor.
        const retired: unknown[] = await tx`
          UPDATE signing_keys SET retires_at = ${predecessor.retiresAt}
          WHERE id = ${predecessor.id} AND retires_at IS NULL RETURNING id`;
        if (retired.length === 0) return false;
      } else {
        const newest: unknown[] = await tx`SELECT id FROM signing_keys WHERE retires_at IS NULL LIMIT 1`;
        if (newest.length > 0) return false;
      }
      await tx`
        INSERT INTO signing_keys (id, public_jwk, sealed_private_jwk, created_at, active_at, retires_at)
        VALUES (${key.id}, ${JSON.stringify(key.publicJwk)}, ${key.sealedPrivateJwk}, ${key.createdAt}, ${key.activeAt},
          ${key.retiresAt})`;
      return true;
    });
  }
}

function fromRow(row: SigningKeyRow): SigningKey {
  return {
    id: row.id,
    publicJwk: JSON.parse(row.public_jwk) as Readonly<Record<string, unknown>>,
    sealedPrivateJwk: row.sealed_private_jwk,
    createdAt: Number(row.created_at),
    activeAt: Number(row.active_at),
    retiresAt: row.retires_at === null ? null : Number(row.retires_at),
  };
}
