// Facts that a PostgreSQL server reports about itself and the rights of the role.
import type { Database } from "./database.ts";
import { type ServerFacts, serverFacts } from "./open-postgres.ts";

export interface PostgresFacts extends ServerFacts {
  tls: boolean;
  maxConnections: number;
  /** Number of connections of every client, including this connection. */
  connections: number;
  /** Connections reserved for superusers and similar roles. */
  reservedConnections: number;
  /** Maximum connections of this role. Undefined without a limit. */
  roleLimit: number | undefined;
  /** True if the role may create tables in Headrace's schema. */
  mayCreate: boolean;
  /** A table of Headrace that another role owns, so this role cannot alter it. */
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
  // Only the owner of a table, or a role with its rights, can alter it.
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
