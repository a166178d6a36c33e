// Reads the usage of people from the credentials and the daily roll-ups, so that its price does not depend on the number
// of requests.
import type { PeopleUsage, PeopleUsageQuery, PersonUsage } from "../../domain/usage/people-usage.ts";
import type { Database } from "../../storage/sql/database.ts";
import { available } from "../../storage/sql/outage.ts";

interface Row {
  person_id: string;
  last_used_at: number | string | null;
  nano_usd: string | null;
}

export class SqlPeopleUsage implements PeopleUsage {
  readonly #db: Database;
  readonly #catchUp: () => Promise<void>;

  /** `catchUp` is `SpoolLedger.catchUp`. */
  constructor(db: Database, catchUp: () => Promise<void> = async () => {}) {
    this.#db = db;
    this.#catchUp = catchUp;
  }

  async of(
    personIds: readonly string[],
    { accountId, environment, since }: PeopleUsageQuery,
  ): Promise<ReadonlyMap<string, PersonUsage>> {
    if (personIds.length === 0) return new Map();
    await this.#catchUp();
    const db = this.#db;
    // The expression with the account keeps the planner at the index of people.
    const rows: Row[] = await available(db`
      SELECT person_id, max(last_used_at) AS last_used_at, CAST(sum(
        CASE WHEN environment = ${environment} THEN (
          SELECT sum(nano_usd) FROM usage_rollups WHERE key_id = api_keys.id AND span = 'day' AND start >= ${since})
        END) AS TEXT) AS nano_usd
      FROM api_keys
      WHERE person_id IN ${db([...personIds])} ${accountId === null ? db`` : db`AND account_id || '' = ${accountId}`}
      GROUP BY person_id`);
    return new Map(
      rows.map((row) => [
        row.person_id,
        {
          nanoUsd: Number(row.nano_usd ?? 0),
          lastUsedAt: row.last_used_at === null ? null : Number(row.last_used_at),
        },
      ]),
    );
  }
}
