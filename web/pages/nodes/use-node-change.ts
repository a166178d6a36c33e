// Changes a node and updates it wherever it is shown.
import { call } from "../../api/client.ts";
import type { Node, UpdateNodeRequest } from "../../api/types.ts";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";

export const nodesPath = "/v1/admin/nodes";
export const tokensPath = "/v1/admin/node-tokens";
/** The paths whose queries a change of a node makes stale. */
export const touchedPaths = [nodesPath, "/v1/admin/upstreams", "/v1/model-status", "/v1/models"] as const;

export function nodePath(id: string): string {
  return `${nodesPath}/${encodeURIComponent(id)}`;
}

export function useNodeChange(id: string, said: (node: Node) => string, done: () => void) {
  return useNotifiedChange((body: UpdateNodeRequest) => call<Node>("PATCH", nodePath(id), { body }), {
    stale: touchedPaths,
    ...{ said, done },
  });
}
