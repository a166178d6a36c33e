// What a PostgreSQL server says of itself and of what we may do there.
import type { Database } from "./database.ts";
import { type ServerFacts, serverFacts } from "./open-postgres.ts";

export interface PostgresFacts extends ServerFacts {
  tls: boolean;
  maxConnections: number;
  /** Connections of everybody, this one included. */
  connections: number;
  /** Kept for superusers and the like. */
  reservedConnections: number;
  /** The most connections of this role; undefined where it has no limit. */
  roleLimit: number | undefined;
  /** Whether the role may make tables where ours are. */
  mayCreate: boolean;
  /** A table of ours that it may not change, as somebody else owns it. */
  foreignTable: string | undefined;
}

interface Row {
  tls: boolean;
  max_connections: number | string;
  connections: number | string;
  reserved: number | string;
  role_limit: number | string;
  may_create: boolean | null;
}

export async function postgresFacts(db: Database): Promise<PostgresFacts> {
  const server = await serverFacts(db);
  const [row]: Row[] = await db`
    SELECT (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS tls,
      current_setting('max_connections') AS max_connections,
      (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
      current_setting('superuser_reserved_connections') AS reserved,
      (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user) AS role_limit,
      has_schema_privilege(current_schema(), 'CREATE') AS may_create`;
  if (!server || !row) throw new Error("the server said nothing of itself");
  // Only an owner, or who has its rights, can change a table.
  const [foreign]: { name: string }[] = await db`
    SELECT c.relname AS name FROM pg_class c
    WHERE c.relkind = 'r' AND c.relnamespace = to_regnamespace(current_schema())
      AND NOT pg_has_role(c.relowner, 'USAGE') AND to_regclass('schema_migrations') IS NOT NULL
    ORDER BY c.relname LIMIT 1`;
  const roleLimit = Number(row.role_limit);
  return {
    ...server,
    tls: row.tls === true,
    maxConnections: Number(row.max_connections),
    connections: Number(row.connections),
    reservedConnections: Number(row.reserved),
    roleLimit: roleLimit < 0 ? undefined : roleLimit,
    mayCreate: row.may_create === true,
    foreignTable: foreign?.name,
  };
}
