// Names of the parties of usage, including ended credentials and deleted people.
import type { UsageParties, UsageParty } from "../../domain/usage/statement.ts";
import type { Database } from "../sql/database.ts";
import { available } from "../sql/outage.ts";

/** Ids of one query. */
const atOnce = 500;

interface CredentialRow {
  id: string;
  kind: UsageParty["kind"];
  person_id: string | null;
  app_id: string | null;
  name: string;
  last4: string;
}

export class SqlUsageParties implements UsageParties {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async credentials(
    { accountId, environment }: Parameters<UsageParties["credentials"]>[0],
    ids: readonly string[],
  ): Promise<Map<string, UsageParty>> {
    const db = this.#db;
    const parties = new Map<string, UsageParty>();
    for await (const some of pieces(ids)) {
      const rows: CredentialRow[] = await available(db`
        SELECT id, kind, person_id, app_id, name, last4 FROM api_keys
        WHERE id IN ${db(some)} AND account_id || '' = ${accountId} AND environment || '' = ${environment}`);
      for (const { id, kind, person_id: personId, app_id: appId, name, last4 } of rows) {
        parties.set(id, { kind, personId, appId, name, last4 });
      }
    }
    return parties;
  }

  async names(ids: readonly string[]): Promise<Record<string, string>> {
    const db = this.#db;
    const names: Record<string, string> = {};
    for await (const some of pieces([...new Set(ids)])) {
      const rows: { id: string; name: string }[] = await available(db`
        SELECT id, name FROM accounts WHERE id IN ${db(some)} UNION ALL
        SELECT id, name FROM organizations WHERE id IN ${db(some)} UNION ALL
        SELECT id, CASE WHEN name = '' THEN 'Key …' || last4 ELSE name END AS name FROM api_keys WHERE id IN ${db(some)}
        UNION ALL SELECT id, coalesce(nullif(name, ''), email) AS name FROM people WHERE id IN ${db(some)} UNION ALL
        SELECT id, name FROM apps WHERE id IN ${db(some)}`);
      for (const { id, name } of rows) names[id] = name;
    }
    return names;
  }

  /** Returns names of people. The name of a deleted person is the address that the membership's credentials keep. */
  async people(accountId: string, ids: readonly string[]): Promise<Map<string, string>> {
    const db = this.#db;
    const names = new Map<string, string>();
    for await (const some of pieces(ids)) {
      const rows: { id: string; name: string | null; email: string }[] = await available(db`
        SELECT k.person_id AS id, min(coalesce(nullif(p.name, ''), p.email)) AS name, min(k.name) AS email
        FROM api_keys k LEFT JOIN people p ON p.id = k.person_id
        WHERE k.person_id IN ${db(some)} AND k.account_id || '' = ${accountId} AND k.kind = 'membership'
        GROUP BY k.person_id`);
      for (const { id, name, email } of rows) names.set(id, name ?? email);
    }
    return names;
  }
}

/**
 * Yields the ids in pieces, with room for other work in between, because SQLite blocks the thread that serves requests.
 */
async function* pieces(ids: readonly string[]): AsyncGenerator<string[]> {
  for (let i = 0; i < ids.length; i += atOnce) {
    if (i > 0) await new Promise(setImmediate);
    yield ids.slice(i, i + atOnce);
  }
}
