// Reads the keys by id, in small pages.
import type { KeySurvey, SurveyedKey } from "../../../domain/notifications/key-survey.ts";
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
  revoked: flag,
  revokedAt: integer,
});

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
        SELECT ${db.unsafe(rows.list)} FROM api_keys
        WHERE id > ${after === "" ? "key_" : after} AND id < ${"key`"} ORDER BY id LIMIT ${atOnce}`),
    );
    const isOn = ({ revoked, revokedAt, expiresAt }: Row) =>
      !revoked && revokedAt === null && (expiresAt === null || expiresAt > nowSeconds);
    return { keys: found.filter(isOn), next: found.length < atOnce ? undefined : found.at(-1)?.id };
  }
}
