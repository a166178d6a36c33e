// Reads the keys by id, in small pages.
import type { KeySurvey, ModelUser, SurveyedKey } from "../../../domain/notifications/key-survey.ts";
import type { Database } from "../../sql/database.ts";
import { available } from "../../sql/outage.ts";
import { flag, integer, table, text } from "../../sql/table.ts";

interface Row extends SurveyedKey {
  revoked: boolean;
  revokedAt: number | null;
}

const rows = table<Row>({
  id: text,
  accountId: text,
  name: text,
  environment: text,
  createdAt: integer,
  lastUsedAt: integer,
  expiresAt: integer,
  everyDays: integer,
  overlapSeconds: integer,
  revoked: flag,
  revokedAt: integer,
});

const users = table<ModelUser>({ keyId: text, model: text });

/** Rows of one query, few because SQLite blocks the thread that serves requests. */
const atOnce = 300;

export class SqlKeySurvey implements KeySurvey {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async page(after: string, nowSeconds: number): Promise<{ keys: SurveyedKey[]; next: string | undefined }> {
    const db = this.#db;
    // Ids of keys have this prefix. Ids of memberships and grants do not.
    const found = await available(
      rows.all(db`
        SELECT ${db.unsafe(rows.list)} FROM api_keys LEFT JOIN key_rotations ON suspended_by IS NULL AND subject = (
          SELECT subject FROM key_rotations
          WHERE subject = limit_id OR (subject = account_id AND scopes NOT LIKE '%admin:manage%')
          ORDER BY every_days, CASE WHEN subject = limit_id THEN 0 ELSE 1 END LIMIT 1)
        WHERE id > ${after === "" ? "key_" : after} AND id < ${"key`"} ORDER BY id LIMIT ${atOnce}`),
    );
    const isOn = ({ revoked, revokedAt, expiresAt }: Row) =>
      !revoked && revokedAt === null && (expiresAt === null || expiresAt > nowSeconds);
    return { keys: found.filter(isOn), next: found.length < atOnce ? undefined : found.at(-1)?.id };
  }

  users(keyIds: readonly string[], models: readonly string[], since: number): Promise<ModelUser[]> {
    const db = this.#db;
    if (keyIds.length === 0 || models.length === 0) return Promise.resolve([]);
    return available(
      users.all(db`
        SELECT DISTINCT key_id, model FROM usage_rollups
        WHERE key_id IN ${db([...keyIds])} AND span = 'day' AND start >= ${since} AND model IN ${db([...models])}`),
    );
  }
}
