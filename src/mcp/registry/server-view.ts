// Builds the operators' view of an MCP server, without secrets.
import { usdOf } from "../../base/money.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";
import type { McpServerWire } from "../../wire/tools/mcp-servers.ts";

/** Returns the settings in the form of the API, also for the audit log. */
export function settingsToWire(server: McpServer) {
  const { place, credentials, environments, accounts, tools, nanoUsdPerCall: nanoUsd } = server;
  return {
    ...{ title: server.title, description: server.description },
    ...{ place: place.kind, url: place.kind === "http" ? place.url : null },
    node: place.kind === "node" ? { node: place.nodeId, server: place.server } : null,
    credentials: credentials.kind,
    header_names: credentials.kind === "headers" ? Object.keys(credentials.headers) : [],
    oauth:
      credentials.kind === "person"
        ? {
            issuer: credentials.issuer,
            client_id: credentials.clientId,
            has_client_secret: credentials.clientSecret !== null,
            scopes: credentials.scopes && [...credentials.scopes],
          }
        : null,
    local: server.local,
    environments: environments && [...environments],
    accounts: accounts && [...accounts],
    tools: tools && [...tools],
    ...{ approval: server.approval, sharing: server.sharing, timeout_seconds: server.timeoutMs / 1_000 },
    protocol_version: server.protocolVersion ?? null,
    ...{ max_result_bytes: server.maxResultBytes, max_concurrency: server.maxConcurrency },
    price_per_call: nanoUsd === null ? null : usdOf(nanoUsd),
    enabled: server.enabled,
  } satisfies Partial<McpServerWire>;
}
