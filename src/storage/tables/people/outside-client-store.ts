// OAuth clients that no account registered, in the database. Their number is bounded, and unused ones are deleted.
import type { OutsideClient, OutsideClientStore } from "../../../domain/people/outside-client.ts";
import type { Database } from "../../sql/database.ts";
import { written } from "../../sql/outage.ts";
import { integer, json, table, text } from "../../sql/table.ts";

export const outsideClients = table<OutsideClient>({
  id: text,
  documentUrl: text,
  name: text,
  homepageUrl: text,
  redirectUris: json,
  createdAt: integer,
  allowedAt: integer,
  suspendedBy: text,
});

/** Maximum number of clients that nobody has authorized yet, because anybody may register a client. */
export const maxWaiting = 1_000;
/** Seconds for which a new client is not replaced, while its person signs in. */
const undisturbedSeconds = 900;
const waitingSeconds = 86_400;
const unusedSeconds = 90 * 86_400;
const pruneAtOnce = 500;

export class SqlOutsideClientStore implements OutsideClientStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  register(client: OutsideClient): Promise<boolean> {
    return written(this.#db, async (tx) => {
      const [row]: { n: number | string }[] = await tx`
        SELECT count(*) AS n FROM outside_clients WHERE allowed_at IS NULL`;
      if (Number(row?.n) >= maxWaiting && !(await makeRoom(tx, client.createdAt))) return false;
      await tx`INSERT INTO outside_clients ${tx(outsideClients.row(client))}`;
      return true;
    });
  }

  async allowed(client: OutsideClient): Promise<void> {
    const row = outsideClients.row(client);
    await written(
      this.#db,
      (tx) => tx`
        INSERT INTO outside_clients ${tx(row)} ON CONFLICT (id) DO UPDATE SET
          name = EXCLUDED.name, homepage_url = EXCLUDED.homepage_url, redirect_uris = EXCLUDED.redirect_uris,
          allowed_at = EXCLUDED.allowed_at`,
    );
  }

  async prune(nowSeconds: number): Promise<void> {
    await written(
      this.#db,
      (tx) => tx`
        DELETE FROM outside_clients WHERE id IN (
          SELECT id FROM outside_clients WHERE allowed_at IS NULL AND created_at <= ${nowSeconds - waitingSeconds}
          LIMIT ${pruneAtOnce})`,
    );
    await written(
      this.#db,
      (tx) => tx`
        DELETE FROM outside_clients WHERE id IN (
          SELECT id FROM outside_clients WHERE allowed_at <= ${nowSeconds - unusedSeconds} AND suspended_by IS NULL AND NOT EXISTS (
            SELECT 1 FROM api_keys WHERE app_id = outside_clients.id AND kind = 'grant' AND revoked = 0)
          LIMIT ${pruneAtOnce})`,
    );
  }
}

/** Makes room by deleting the oldest clients without an authorization. Returns false if all of them are recent. */
async function makeRoom(tx: Database, nowSeconds: number): Promise<boolean> {
  const gone: unknown[] = await tx`
    DELETE FROM outside_clients WHERE id IN (
      SELECT id FROM outside_clients
      WHERE allowed_at IS NULL AND created_at <= ${nowSeconds - undisturbedSeconds} ORDER BY created_at LIMIT 1)
    RETURNING id`;
  return gone.length > 0;
}
