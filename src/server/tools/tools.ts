// Composes the MCP endpoint: the servers, the sessions with them, and the tools for clients.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { type Config, processEnvironment, type ReloadableConfig } from "../../config/config.ts";
import type { ChangeFeed } from "../../domain/change-feed.ts";
import { nodeCalled } from "../../domain/models/node.ts";
import type { Principal } from "../../domain/principal.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";
import type { ToolNodes } from "../../domain/tools/node-tools.ts";
import type { RoutingWatcher } from "../../inference/routing/routing-watcher.ts";
import { ServerSessions, type ServerSessionsDeps } from "../../mcp/client/sessions.ts";
import type { Revocations } from "../../mcp/connections/revocations.ts";
import { Definitions } from "../../mcp/registry/definitions.ts";
import { ManagedServers } from "../../mcp/registry/managed-servers.ts";
import { NodeWatch } from "../../mcp/registry/node-watch.ts";
import { ServerTests } from "../../mcp/registry/server-tests.ts";
import type { ClientRequest } from "../../mcp/server/client-call.ts";
import type { Endpoint } from "../../mcp/server/endpoint.ts";
import type { RequestHandler } from "../../mcp/server/request-handler.ts";
import type { IncidentWatch } from "../../notifications/watch/incident-watch.ts";
import { waitingTools } from "../../notifications/watch/waiting-tools.ts";
import type { Database } from "../../storage/sql/database.ts";
import { ExpirySweep } from "../../storage/tables/expiry-sweep.ts";
import { SqlNodeStore } from "../../storage/tables/node-store.ts";
import { SqlApprovedCalls } from "../../storage/tables/tools/approved-call-store.ts";
import { SqlDefinitionStore } from "../../storage/tables/tools/definition-store.ts";
import { SqlMcpServerStore } from "../../storage/tables/tools/mcp-server-store.ts";
import type { Governance } from "../governance.ts";
import type { Opened } from "../opened.ts";
import { StoredApprovals } from "./approved-calls.ts";
import { HandlerTools } from "./model-tools.ts";
import { openToolAuthorization, openToolConnections } from "./tool-connections.ts";
import type { ToolUseParts } from "./tool-uses.ts";

export interface ToolsOptions extends Pick<ServerSessionsDeps, "dataDir" | "version"> {
  db: Database;
  config: Config;
  governance: Governance;
  feed: ChangeFeed;
  /** Detects changes by other processes. Undefined without any. */
  watcher: RoutingWatcher | undefined;
  /** Reports waiting changes to operators. */
  incidents: IncidentWatch;
  /** Replaces the file's servers in tests. */
  servers: (() => readonly McpServer[]) | undefined;
  /** Returns the current configuration. */
  current(): Pick<ReloadableConfig, "tools">;
  uses: ToolUseParts;
  nodes: ToolNodes;
  /** Returns the public URL without a trailing slash. */
  installationUrl(): string;
  clock: Clock;
  log: Log;
  opened: Opened;
}

export async function openTools(options: ToolsOptions) {
  const { current, uses, nodes, clock, log, opened, installationUrl } = options;
  const { db, governance, dataDir, version } = options;
  const authorization = openToolAuthorization(options);
  opened.add(authorization.revocations);
  const { mcpServers, toolDefinitions, findNode } = await openServers(options, authorization.revocations);
  const connections = openToolConnections({
    ...{ ...authorization, db, governance, servers: mcpServers, issuer: installationUrl, clock, log },
  });
  const links = new ServerSessions({
    ...{ dataDir, version, nodes, clock, log, connections: connections.personConnections },
    environment: processEnvironment(),
    connectAt: (server) => `${installationUrl()}/tools?account=${server}`,
  });
  opened.onClose(() => links.shut());
  endWithServers(mcpServers, links, toolDefinitions);
  const nodeWatch = opened.add(new NodeWatch(mcpServers, nodes));
  nodeWatch.onChange(() => links.nodesChanged());
  const onChange = (listener: () => void) => {
    const ends = [mcpServers, nodeWatch].map((one) => one.onChange(listener));
    ends.push(toolDefinitions.onDecision(listener));
    return () => {
      for (const end of ends) end();
    };
  };
  const still = (principal: Principal) => governance.authenticator.still(principal);
  let front: Promise<{ handler: RequestHandler; endpoint: Endpoint }> | undefined;
  /** The protocol's packages are loaded with the first request. */
  const open = async () => {
    const [handlerModule, endpointModule] = await Promise.all([
      import("../../mcp/server/request-handler.ts"),
      import("../../mcp/server/endpoint.ts"),
    ]);
    const handler = new handlerModule.RequestHandler({
      ...{ servers: mcpServers, links, definitions: toolDefinitions, onChange, clock, log },
      ...{ slots: uses.mcpServerSlots, uses: uses.toolUses, sampler: uses.toolSampler },
      searchFrom: () => current().tools.searchFrom,
    });
    return { handler, endpoint: new endpointModule.Endpoint(handler, clock, still) };
  };
  const loaded = () => {
    front ??= open();
    return front;
  };
  opened.onClose(async () => (await front)?.endpoint.close());
  governance.suspensions.onSuspended(() => void front?.then(({ endpoint }) => endpoint.check()));
  const handler = async () => (await loaded()).handler;
  return {
    mcpServers,
    toolDefinitions,
    mcpServerTests: new ServerTests({
      ...{ servers: mcpServers, definitions: toolDefinitions, findNode, clock },
      separateLink: (server, caller) => links.separate(server, caller),
    }),
    modelTools: new HandlerTools({ servers: mcpServers, uses: uses.toolUses, handler, installationUrl }),
    approvedCalls: openApprovals(options),
    ...connections,
    mcp: {
      async answer(request: Request, from: ClientRequest, body: unknown): Promise<Response> {
        return await (await loaded()).endpoint.answer(request, from, body);
      },
    },
  };
}

function openApprovals({ db, governance, clock, log, opened }: ToolsOptions): StoredApprovals {
  const { responses, deletionClock } = governance;
  const store = new SqlApprovedCalls(db);
  opened.add(new ExpirySweep({ what: "approved_call", store, deletionClock, log }));
  return new StoredApprovals({ store, responses, clock });
}

/** Opens the servers of the file and the database, and their approvals. */
async function openServers(options: ToolsOptions, revocations: Revocations) {
  const { db, feed, watcher, governance, current, nodes, clock, log } = options;
  const announce = () => feed.announce("routing");
  const toolDefinitions = new Definitions({ store: new SqlDefinitionStore(db), nodes, announce, clock, log });
  const nodeStore = new SqlNodeStore(db, feed);
  const findNode = async (asked: string) => nodeCalled(await nodeStore.listNodes(), asked);
  const mcpServers = new ManagedServers({
    file: options.servers ?? (() => current().tools.servers),
    store: new SqlMcpServerStore(db),
    sealingKey: governance.keyFor("tool-server-seal-v1"),
    waiting: () => toolDefinitions.waiting(),
    ended: (connections) => revocations.begin(connections),
    ...{ findNode, announce, log },
  });
  // Subscribes before reading, so that changes in between are found by the next poll.
  watcher?.also(async () => {
    await mcpServers.load();
    await toolDefinitions.reload();
  });
  await mcpServers.load();
  options.incidents.also(async () => {
    const servers = mcpServers.all();
    if (servers.length === 0) return [];
    const waiting = await toolDefinitions.waiting();
    return waitingTools(new Map(servers.map(({ name }) => [name, waiting.get(name) ?? 0])));
  });
  return { mcpServers, toolDefinitions, findNode };
}

/** Closes sessions of changed servers, and drops all state of removed ones. */
function endWithServers(servers: ManagedServers, links: ServerSessions, definitions: Definitions): void {
  let before = servers.all();
  servers.onChange(() => {
    const now = servers.all();
    for (const server of before) {
      const same = now.find(({ name }) => name === server.name);
      if (!Bun.deepEquals(same, server)) links.close(server.name);
      if (!same) definitions.forget(server.name);
    }
    before = now;
  });
}
