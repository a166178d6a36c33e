// The shapes of nodes as the API has them, until the generated types have them.
import type { Environment } from "../../api/client.ts";

export interface NodeModel {
  id: string;
  context: number | null;
  capabilities: { chat?: boolean; completion?: boolean; embeddings?: boolean } | null;
  approved: boolean;
}

export interface Node {
  object: "node";
  id: string;
  name: string;
  status: "pending" | "online" | "offline" | "draining";
  draining: boolean;
  approved_models: string[];
  announced_models: NodeModel[];
  environments: Environment[];
  max_concurrency: number | null;
  running: number;
  waiting: number;
  concurrency: number | null;
  version: string | null;
  client_address: string | null;
  replica_id: string | null;
  connected_at: number | null;
  last_seen_at: number | null;
  created_at: number;
}

export interface UpdateNodeRequest {
  name?: string;
  approved_models?: string[];
  environments?: Environment[];
  max_concurrency?: number | null;
  draining?: boolean;
}

export interface CreateNodeJoinTokenRequest {
  approved_models?: string[] | null;
  environments?: Environment[] | null;
  expires_in?: number | null;
}

export interface NodeJoinToken {
  object: "node_join_token";
  id: string;
  last4: string;
  status: "active" | "used" | "expired";
  approved_models: string[];
  environments: Environment[];
  created_at: number;
  expires_at: number;
  used_at: number | null;
  node_id: string | null;
}

export interface CreatedNodeJoinToken extends NodeJoinToken {
  token: string;
}
