// Accounts of people at MCP servers, and registered clients, in the database. Tokens arrive sealed.
import type { AuditEvent } from "../../../domain/audit.ts";
import type {
  RegisteredToolClient,
  RenewedTokens,
  StoredToolConnection,
  ToolConnectionStore,
  ToolPerson,
} from "../../../domain/tools/tool-connection.ts";
import type { Database } from "../../sql/database.ts";
import { available, written } from "../../sql/outage.ts";
import { integer, table, text, words } from "../../sql/table.ts";
import { insertAuditEvent } from "../audit-log.ts";
import { whileActive } from "../credential-change.ts";

type Same = Pick<StoredToolConnection, "id" | "sealed">;

const connections = table<StoredToolConnection>({
  id: text,
  server: text,
  accountId: text,
  personId: text,
  membershipId: text,
  issuer: text,
  scopes: words,
  wantedScopes: words,
  createdAt: integer,
  lastUsedAt: integer,
  brokenBecause: text,
  url: text,
  sealed: text,
  expiresAt: integer,
  renewedAt: integer,
});

const clients = table<RegisteredToolClient>({ server: text, issuer: text, sealed: text, createdAt: integer });

export class SqlToolConnectionStore implements ToolConnectionStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  find(server: string, { accountId, personId }: ToolPerson): Promise<StoredToolConnection | undefined> {
    return available(
      connections.first(this.#db`
        SELECT * FROM tool_connections
        WHERE person_id = ${personId} AND account_id = ${accountId} AND server = ${server}`),
    );
  }

  listOf({ accountId, personId }: ToolPerson): Promise<StoredToolConnection[]> {
    return available(
      connections.all(this.#db`
        SELECT * FROM tool_connections WHERE person_id = ${personId} AND account_id = ${accountId} ORDER BY server`),
    );
  }

  list(
    { server }: { server?: string | undefined },
    { after, limit }: { after: string | undefined; limit: number },
  ): Promise<StoredToolConnection[]> {
    const db = this.#db;
    const ofServer = server === undefined ? db`` : db`AND server = ${server}`;
    const before = after === undefined ? db`` : db`AND id < ${after}`;
    return available(
      connections.all(db`
        SELECT * FROM tool_connections WHERE id <> '' ${ofServer} ${before} ORDER BY id DESC LIMIT ${limit}`),
    );
  }

  put(connection: StoredToolConnection, event: AuditEvent): Promise<boolean> {
    const { server, accountId, personId, membershipId } = connection;
    return whileActive(this.#db, event, async (tx) => {
      const held: unknown[] = await tx`
        SELECT id FROM memberships
        WHERE id = ${membershipId} AND person_id = ${personId} AND account_id = ${accountId}`;
      if (held.length === 0) return false;
      await tx`
        DELETE FROM tool_connections
        WHERE person_id = ${personId} AND account_id = ${accountId} AND server = ${server}`;
      await tx`INSERT INTO tool_connections ${tx(connections.row(connection))}`;
      await insertAuditEvent(tx, event);
      return true;
    });
  }

  remove({ id }: Pick<StoredToolConnection, "id">, event: AuditEvent): Promise<boolean> {
    return whileActive(this.#db, event, async (tx) => {
      const removed: unknown[] = await tx`DELETE FROM tool_connections WHERE id = ${id} RETURNING id`;
      if (removed.length > 0) await insertAuditEvent(tx, event);
      return removed.length > 0;
    });
  }

  async claim(
    { id, sealed }: Same,
    { name, nowSeconds, untilSeconds }: { name: string; nowSeconds: number; untilSeconds: number },
  ): Promise<boolean> {
    const claimed: unknown[] = await written(
      this.#db,
      (tx) => tx`
        UPDATE tool_connections SET claim = ${name}, claimed_until = ${untilSeconds}
        WHERE id = ${id} AND sealed = ${sealed} AND broken_because IS NULL AND claimed_until <= ${nowSeconds}
        RETURNING id`,
    );
    return claimed.length > 0;
  }

  async settle(
    id: string,
    claimName: string,
    outcome: RenewedTokens | { brokenBecause: string } | "unchanged",
  ): Promise<boolean> {
    const set = outcome === "unchanged" ? {} : inColumns(outcome);
    const row = { ...set, claim: null, claimed_until: 0 };
    const settled: unknown[] = await written(
      this.#db,
      (tx) => tx`UPDATE tool_connections SET ${tx(row)} WHERE id = ${id} AND claim = ${claimName} RETURNING id`,
    );
    return settled.length > 0;
  }

  async expire({ id, sealed }: Same, nowSeconds: number): Promise<void> {
    await written(
      this.#db,
      (tx) => tx`UPDATE tool_connections SET expires_at = ${nowSeconds} WHERE id = ${id} AND sealed = ${sealed}`,
    );
  }

  async breakOff({ id, sealed }: Same, because: string): Promise<void> {
    await written(
      this.#db,
      (tx) => tx`UPDATE tool_connections SET broken_because = ${because} WHERE id = ${id} AND sealed = ${sealed}`,
    );
  }

  async used(id: string, nowSeconds: number): Promise<void> {
    await written(
      this.#db,
      (tx) => tx`
        UPDATE tool_connections SET last_used_at = ${nowSeconds}
        WHERE id = ${id} AND (last_used_at IS NULL OR last_used_at < ${nowSeconds})`,
    );
  }

  async want({ id, sealed }: Same, scopes: readonly string[]): Promise<void> {
    await written(
      this.#db,
      (tx) => tx`
        UPDATE tool_connections SET wanted_scopes = ${scopes.join(" ")} WHERE id = ${id} AND sealed = ${sealed}`,
    );
  }

  findClient(server: string, issuer: string): Promise<RegisteredToolClient | undefined> {
    return available(
      clients.first(this.#db`SELECT * FROM tool_clients WHERE server = ${server} AND issuer = ${issuer}`),
    );
  }

  async putClient(client: RegisteredToolClient): Promise<void> {
    await written(
      this.#db,
      (tx) => tx`
        INSERT INTO tool_clients ${tx(clients.row(client))}
        ON CONFLICT (server, issuer) DO UPDATE SET sealed = excluded.sealed, created_at = excluded.created_at`,
    );
  }
}

/** Maximum ended connections that are returned, because they are in memory at once. */
const maxEnded = 1_000;

/**
 * Ends all connections of a server that was deleted or moved. Returns the newest of them. Call it in the transaction of
 * that change.
 */
export async function endConnections(tx: Database, server: string): Promise<StoredToolConnection[]> {
  const ended = await connections.all(tx`
    DELETE FROM tool_connections
    WHERE id IN (SELECT id FROM tool_connections WHERE server = ${server} ORDER BY id DESC LIMIT ${maxEnded})
    RETURNING *`);
  await tx`DELETE FROM tool_connections WHERE server = ${server}`;
  await tx`DELETE FROM tool_clients WHERE server = ${server}`;
  return ended;
}

function inColumns(outcome: RenewedTokens | { brokenBecause: string }): Record<string, string | number | null> {
  if ("brokenBecause" in outcome) return { broken_because: outcome.brokenBecause };
  const { sealed, expiresAt, renewedAt, scopes } = outcome;
  return { sealed, expires_at: expiresAt, renewed_at: renewedAt, scopes: scopes.join(" ") };
}
