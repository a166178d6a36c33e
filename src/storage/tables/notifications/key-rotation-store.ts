// Schedules of key rotations, and rotations whose successor was not fetched yet.
import type { AuditEvent } from "../../../domain/audit.ts";
import type { KeyRotation, KeyRotationStore } from "../../../domain/key-rotation.ts";
import { keyStatus } from "../../../domain/principal.ts";
import type { Database } from "../../sql/database.ts";
import { available } from "../../sql/outage.ts";
import { integer, table } from "../../sql/table.ts";
import { changeCredentials } from "../credential-change.ts";
import { readKey } from "../credential-rows.ts";

const rotations = table<KeyRotation>({ everyDays: integer, overlapSeconds: integer });

export class SqlKeyRotationStore implements KeyRotationStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  find(subject: string): Promise<KeyRotation | undefined> {
    return available(findRotation(this.#db, subject));
  }

  set(subject: string, rotation: KeyRotation | undefined, event: AuditEvent): Promise<void> {
    return changeCredentials(this.#db, event, async (tx) => {
      await tx`DELETE FROM key_rotations WHERE subject = ${subject}`;
      if (rotation) await tx`INSERT INTO key_rotations ${tx({ subject, ...rotations.row(rotation) })}`;
      return { result: undefined, changed: "added" };
    });
  }

  begin(keyId: string, endsAt: number, event: AuditEvent): Promise<boolean> {
    return changeCredentials(this.#db, event, async (tx) => {
      const key = await readKey(tx, keyId);
      if (!key || key.revokedAt !== null || keyStatus(key, event.at) !== "active") {
        return { result: false, changed: false };
      }
      if (key.scopes.includes("admin:manage") && !(await findRotation(tx, key.limitId))) {
        return { result: false, changed: false };
      }
      await tx`UPDATE api_keys SET revoked_at = ${endsAt} WHERE id = ${keyId}`;
      await tx`DELETE FROM due_rotations WHERE ends_at < ${event.at}`;
      await tx`INSERT INTO due_rotations ${tx({ key_id: keyId, ends_at: endsAt })}`;
      return { result: true, changed: true };
    });
  }

  async isDue(keyId: string): Promise<boolean> {
    const found = await available(this.#db`SELECT 1 AS due FROM due_rotations WHERE key_id = ${keyId}`);
    return found.length > 0;
  }
}

function findRotation(db: Database, subject: string): Promise<KeyRotation | undefined> {
  return rotations.first(db`SELECT ${db.unsafe(rotations.list)} FROM key_rotations WHERE subject = ${subject}`);
}
