// Composes the endpoint of tools: which servers there are, how they are reached, and what their clients get of them.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { type Config, processEnvironment, type ReloadableConfig } from "../../config/config.ts";
import type { ToolNodes } from "../../domain/tools/node-tools.ts";
import type { ToolServers } from "../../domain/tools/tool-server.ts";
import type { ClientRequest } from "../../mcp/front/client-call.ts";
import type { Desk } from "../../mcp/front/desk.ts";
import type { Endpoint } from "../../mcp/front/endpoint.ts";
import { ServerLinks, type ServerLinksDeps } from "../../mcp/links/links.ts";
import { ConfiguredServers } from "../../mcp/servers/configured-servers.ts";
import { Definitions } from "../../mcp/servers/definitions.ts";
import { PlacedServers } from "../../mcp/servers/placed-servers.ts";
import type { Database } from "../../storage/sql/database.ts";
import { SqlDefinitionStore } from "../../storage/tables/tools/definition-store.ts";
import type { Governance } from "../governance.ts";
import type { Opened } from "../opened.ts";
import { DeskTools } from "./model-tools.ts";
import { openToolConnections } from "./tool-connections.ts";
import type { ToolUseParts } from "./tool-uses.ts";

export interface ToolsOptions extends Pick<ServerLinksDeps, "dataDir" | "version"> {
  db: Database;
  config: Config;
  governance: Governance;
  /** In the place of those that are configured, where a test has some of its own. */
  servers: ToolServers | undefined;
  /** The configuration as it is now. */
  current(): Pick<ReloadableConfig, "tools">;
  uses: ToolUseParts;
  nodes: ToolNodes;
  /** The public URL, without a slash at the end. */
  installationUrl(): string;
  clock: Clock;
  log: Log;
  opened: Opened;
}

export function openTools(options: ToolsOptions) {
  const { db, current, uses, nodes, clock, log, opened, installationUrl } = options;
  const toolServers = options.servers ?? new ConfiguredServers(() => current().tools.servers);
  const toolDefinitions = new Definitions({ store: new SqlDefinitionStore(db), clock, log });
  const { config, governance, dataDir, version } = options;
  const connections = openToolConnections({
    ...{ db, config, governance, servers: toolServers, issuer: installationUrl, clock, log, opened },
  });
  const links = new ServerLinks({
    ...{ dataDir, version, nodes, clock, log, connections: connections.personConnections },
    environment: processEnvironment(),
    connectAt: () => `${installationUrl()}/tools`,
  });
  opened.onClose(() => links.shut());
  const placedServers = opened.add(new PlacedServers(toolServers, nodes));
  placedServers.onChange(() => links.nodesChanged());
  // A server that is another one now is connected to anew.
  let before = toolServers.all();
  toolServers.onChange(() => {
    const now = toolServers.all();
    for (const server of before) {
      const same = now.find(({ name }) => name === server.name);
      if (JSON.stringify(same) !== JSON.stringify(server)) links.close(server.name);
    }
    before = now;
  });
  let front: Promise<{ desk: Desk; endpoint: Endpoint }> | undefined;
  /** The packages of the protocol are loaded with the first request. */
  const open = async () => {
    const [deskModule, endpointModule] = await Promise.all([
      import("../../mcp/front/desk.ts"),
      import("../../mcp/front/endpoint.ts"),
    ]);
    const desk = new deskModule.Desk({
      ...{ servers: placedServers, links, definitions: toolDefinitions, clock, log },
      ...{ uses: uses.toolUses, sampler: uses.toolSampler },
      searchFrom: () => current().tools.searchFrom,
    });
    return { desk, endpoint: new endpointModule.Endpoint(desk, clock) };
  };
  const loaded = () => {
    front ??= open();
    return front;
  };
  opened.onClose(async () => (await front)?.endpoint.close());
  const desk = async () => (await loaded()).desk;
  return {
    toolServers,
    toolDefinitions,
    modelTools: new DeskTools({ servers: toolServers, desk, installationUrl }),
    ...connections,
    mcp: {
      async answer(request: Request, from: ClientRequest, body: unknown): Promise<Response> {
        return await (await loaded()).endpoint.answer(request, from, body);
      },
    },
  };
}
