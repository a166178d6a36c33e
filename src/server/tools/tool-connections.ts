// Composes people's accounts at MCP servers.
import { Pending } from "../../accounts/pending.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Config } from "../../config/config.ts";
import type { McpServers } from "../../domain/tools/mcp-server.ts";
import { resolveBySystem } from "../../egress/addresses.ts";
import { ToolAuthorization } from "../../mcp/connections/authorization.ts";
import { type BegunConnection, ConnectFlow, connectLifeSeconds } from "../../mcp/connections/connect-flow.ts";
import { PersonConnections } from "../../mcp/connections/person-connections.ts";
import { Revocations } from "../../mcp/connections/revocations.ts";
import { ToolSeals } from "../../mcp/connections/tool-tokens.ts";
import type { Database } from "../../storage/sql/database.ts";
import { SqlPendingStore } from "../../storage/tables/people/pending-store.ts";
import { SqlToolConnectionStore } from "../../storage/tables/tools/tool-connection-store.ts";
import type { Governance } from "../governance.ts";

export interface ToolAuthorizationOptions {
  config: Config;
  governance: Governance;
  clock: Clock;
  log: Log;
}

/** Creates the OAuth client for the authorization servers of MCP servers. */
export function openToolAuthorization({ config, governance, clock, log }: ToolAuthorizationOptions) {
  const seals = new ToolSeals(governance.keyFor("tool-connection-seal-v1"));
  const rules = { allowLoopback: config.mode === "development" };
  const authorization = new ToolAuthorization({ rules, resolve: resolveBySystem });
  return { seals, authorization, revocations: new Revocations({ authorization, seals, clock, log }) };
}

export interface ToolConnectionsOptions extends ReturnType<typeof openToolAuthorization> {
  db: Database;
  governance: Governance;
  /** Returns the public URL without a trailing slash. */
  issuer(): string;
  servers: McpServers;
  clock: Clock;
  log: Log;
}

const maxPending = 10_000;

export type ToolConnectionParts = ReturnType<typeof openToolConnections>;

export function openToolConnections({ db, governance, issuer, servers, clock, log, ...asked }: ToolConnectionsOptions) {
  const { keyFor, audit } = governance;
  const { authorization, seals, revocations } = asked;
  const store = new SqlToolConnectionStore(db);
  const pending = new Pending<BegunConnection>(
    { store: new SqlPendingStore(db), sealingKey: keyFor("pending-seal-v1"), clock },
    { name: "tool_connection", lifeSeconds: connectLifeSeconds, most: maxPending },
  );
  return {
    toolConnections: store,
    connectFlow: new ConnectFlow({ servers, store, authorization, revocations, seals, pending, issuer, clock }),
    personConnections: new PersonConnections({ servers, store, authorization, seals, audit, clock, log }),
  };
}
