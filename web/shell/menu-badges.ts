// The numbers in the menu for operators: upstreams that fail, and definitions and nodes that wait for approval.
import { useRead } from "../api/queries.ts";
import type { McpServerList, NodeList, UpstreamList } from "../api/types.ts";

const everyMs = 60_000;
/** A failing upstream shows soon after the server notices it. */
const failingEveryMs = 10_000;

export interface MenuBadge {
  count: number;
  /** The words after the count, for screen readers. */
  what: "to approve" | "failing";
}

/** Returns the badges by the path of their page. Loads nothing unless the user is an operator. */
export function useMenuBadges(isOperator: boolean): ReadonlyMap<string, MenuBadge> {
  const options = { everyMs, enabled: isOperator };
  const upstreams = useRead<UpstreamList>("/v1/admin/upstreams", {}, { ...options, everyMs: failingEveryMs });
  const servers = useRead<McpServerList>("/v1/admin/tool-servers", {}, options);
  const nodes = useRead<NodeList>("/v1/admin/nodes", {}, options);
  const failing = upstreams.data?.data.filter(({ attempts }) => attempts?.failing).length ?? 0;
  const waiting = servers.data?.data.reduce((sum, server) => sum + server.waiting, 0) ?? 0;
  const pending =
    nodes.data?.data.filter(({ status, announced_models: announced }) => status === "pending" && announced.length > 0)
      .length ?? 0;
  return new Map([
    ["/admin/upstreams", { count: failing, what: "failing" }],
    ["/admin/tool-servers", { count: waiting, what: "to approve" }],
    ["/admin/nodes", { count: pending, what: "to approve" }],
  ]);
}
