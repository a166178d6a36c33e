// The number of things in the menu that wait for an operator: definitions of MCP servers and nodes.
import { useRead } from "../api/queries.ts";
import type { McpServerList, NodeList } from "../api/types.ts";

const everyMs = 60_000;

/** Returns the counts by the path of their page. Loads nothing unless the user is an operator. */
export function useMenuBadges(isOperator: boolean): ReadonlyMap<string, number> {
  const options = { everyMs, enabled: isOperator };
  const servers = useRead<McpServerList>("/v1/admin/tool-servers", {}, options);
  const nodes = useRead<NodeList>("/v1/admin/nodes", {}, options);
  const pending =
    nodes.data?.data.filter(({ status, announced_models: announced }) => status === "pending" && announced.length > 0)
      .length ?? 0;
  return new Map([
    ["/admin/tool-servers", servers.data?.data.reduce((sum, { waiting }) => sum + waiting, 0) ?? 0],
    ["/admin/nodes", pending],
  ]);
}
