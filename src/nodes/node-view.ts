// Builds the operators' view of nodes and join tokens.
import type { NodeJoinToken, NodeRecord } from "../domain/models/node.ts";
import { workOf } from "../inference/models/upstream-view.ts";
import type { Capacity } from "../inference/routing/capacity.ts";
import type { Router } from "../inference/routing/route.ts";
import type { JoinTokenWire, NodeStatus, NodeWire } from "../wire/nodes.ts";
import type { NodeDirectory } from "./node-directory.ts";
import { isApproved, type NodeEngine } from "./node-engine.ts";

export interface NodeViewDeps {
  directory: Pick<NodeDirectory, "locate" | "isLeaving">;
  capacity: Pick<Capacity, "figures">;
  router: Pick<Router, "drained">;
}

export function nodeToWire(
  record: NodeRecord,
  engine: NodeEngine,
  { directory, capacity, router }: NodeViewDeps,
): NodeWire {
  const { id, name, maxConcurrency, toolServers } = record;
  const location = directory.locate(id);
  const draining = router.drained.has(name);
  const models = record.announced.map((model) => ({
    id: model.id,
    context: model.context ?? null,
    capabilities: model.capabilities ?? null,
    approved: isApproved(record, model.id),
    process: model.process ?? null,
  }));
  const figures = capacity.figures(engine);
  return {
    object: "node",
    id,
    name,
    status: statusOf({
      isConnected: location !== undefined,
      draining: draining || directory.isLeaving(id),
      // A node that offers only MCP servers needs no approval.
      isApproved: models.some(({ approved }) => approved) || (models.length === 0 && toolServers.length > 0),
    }),
    draining,
    approved_models: [...record.approvedModels],
    announced_models: models,
    tool_servers: [...toolServers],
    environments: [...record.environments],
    max_concurrency: maxConcurrency,
    local: record.local,
    ...workOf(figures, figures, maxConcurrency),
    version: record.version,
    client_address: location?.clientAddress ?? null,
    replica_id: location?.replicaId ?? null,
    connected_at: location?.connectedAt ?? null,
    last_seen_at: record.lastSeenAt,
    created_at: record.createdAt,
  };
}

function statusOf(node: { isConnected: boolean; draining: boolean; isApproved: boolean }): NodeStatus {
  if (!node.isConnected) return "offline";
  if (node.draining) return "draining";
  return node.isApproved ? "online" : "pending";
}

export function joinTokenToWire(token: NodeJoinToken, nowSeconds: number): JoinTokenWire {
  const isOver = token.expiresAt <= nowSeconds;
  return {
    object: "node_join_token",
    id: token.id,
    last4: token.last4,
    status: token.usedAt !== null ? "used" : isOver ? "expired" : "active",
    approved_models: [...token.approvedModels],
    environments: [...token.environments],
    created_at: token.createdAt,
    expires_at: token.expiresAt,
    used_at: token.usedAt,
    node_id: token.nodeId,
  };
}
