// MCP servers that operators added, in the database. Credentials arrive sealed.
import type { AuditEvent } from "../../../domain/audit.ts";
import type { McpServerEnds, McpServerStore, StoredMcpServer } from "../../../domain/tools/mcp-server-store.ts";
import type { StoredToolConnection } from "../../../domain/tools/tool-connection.ts";
import type { Database } from "../../sql/database.ts";
import { available } from "../../sql/outage.ts";
import { integer, json, table, text } from "../../sql/table.ts";
import { changeRouting } from "../routing-change.ts";
import { endConnections } from "./tool-connection-store.ts";

/** Members that no statement filters by. The column `settings` holds them as JSON. */
type Settings = Omit<StoredMcpServer, (typeof own)[number]>;

const own = ["name", "place", "credentialKind", "sealedCredentials", "createdAt"] as const;

const servers = table<Pick<StoredMcpServer, (typeof own)[number]> & { settings: Settings }>({
  name: text,
  place: json,
  credentialKind: text,
  sealedCredentials: text,
  settings: json,
  createdAt: integer,
});

export class SqlMcpServerStore implements McpServerStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async listMcpServers(): Promise<StoredMcpServer[]> {
    const stored = await available(servers.all(this.#db`SELECT * FROM tool_servers ORDER BY name`));
    return stored.map(fromColumns);
  }

  insertMcpServer(server: StoredMcpServer, event: AuditEvent): Promise<boolean> {
    return changeRouting(this.#db, event, async (tx) => {
      const added: unknown[] = await tx`
        INSERT INTO tool_servers ${tx(servers.row(inColumns(server)))} ON CONFLICT (name) DO NOTHING RETURNING name`;
      return added.length > 0;
    });
  }

  async changeMcpServer(
    before: StoredMcpServer,
    server: StoredMcpServer,
    ends: McpServerEnds,
    event: AuditEvent,
  ): Promise<StoredToolConnection[] | undefined> {
    const { name } = server;
    const row = servers.part(inColumns(server), "place", "credentialKind", "sealedCredentials", "settings");
    let ended: StoredToolConnection[] = [];
    const isChanged = await changeRouting(this.#db, event, async (tx) => {
      // The row is locked from here on: concurrent transactions wait.
      const now = await servers.first(
        tx`UPDATE tool_servers SET created_at = created_at WHERE name = ${name} RETURNING *`,
      );
      if (!now || !Bun.deepEquals(fromColumns(now), before)) return false;
      await tx`UPDATE tool_servers SET ${tx(row)} WHERE name = ${name}`;
      if (ends.connections) ended = await endConnections(tx, name);
      return true;
    });
    return isChanged ? ended : undefined;
  }

  async deleteMcpServer(
    name: string,
    { keepsName }: { keepsName: boolean },
    event: AuditEvent,
  ): Promise<StoredToolConnection[] | undefined> {
    let ended: StoredToolConnection[] = [];
    const isDeleted = await changeRouting(this.#db, event, async (tx) => {
      const deleted: unknown[] = await tx`DELETE FROM tool_servers WHERE name = ${name} RETURNING name`;
      if (deleted.length === 0) return false;
      if (keepsName) return true;
      await tx`DELETE FROM tool_definitions WHERE server = ${name}`;
      ended = await endConnections(tx, name);
      return true;
    });
    return isDeleted ? ended : undefined;
  }
}

function fromColumns({ settings, ...server }: ReturnType<typeof inColumns>): StoredMcpServer {
  return { ...server, ...settings };
}

function inColumns(server: StoredMcpServer) {
  const { name, place, credentialKind, sealedCredentials, createdAt, ...settings } = server;
  return { name, place, credentialKind, sealedCredentials, createdAt, settings };
}
