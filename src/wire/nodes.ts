// Schemas of nodes and join tokens in the API's requests and answers: for operators, and for a node that joins.

import { z } from "zod";
import { defaultEnvironments, environments } from "../domain/api-key.ts";
import { byCapability } from "../domain/models/capabilities.ts";
import { modelProcessStates } from "../domain/models/model-process-state.ts";
import { everyModel, joinTokenSeconds, maxNodeModels } from "../domain/models/node.ts";
import { offeredKinds } from "../domain/tools/node-tools.ts";
import { modelId, unixSeconds } from "./parts.ts";

export const nodeStatuses = ["pending", "online", "offline", "draining"] as const;
export type NodeStatus = (typeof nodeStatuses)[number];
export const joinTokenStatuses = ["active", "used", "expired"] as const;
export type JoinTokenStatus = (typeof joinTokenStatuses)[number];

const name = z.string().min(1).max(63);
const approvedModels = z
  .array(modelId)
  .max(maxNodeModels)
  .describe(
    `Ids of announced models that the node may serve. ["${everyModel}"]: all models that it announces, now and later.`,
  );
const environmentList = z
  .array(z.enum(environments))
  .min(1)
  .max(environments.length)
  .describe("Environments whose keys may use the node's models.");
const maxConcurrency = z
  .int()
  .min(1)
  .max(1_000_000)
  .nullable()
  .describe(
    "Maximum number of concurrent requests. Further requests wait in the queue. null: the announced value, else measured automatically.",
  );
const local = z
  .boolean()
  .describe("True if keys with `never_leaves` may use the node, because it sends nothing on to other systems.");
const draining = z
  .boolean()
  .describe("While true, the node finishes its requests and gets no new ones. Survives a restart.");

const processState = z
  .enum(modelProcessStates)
  .nullable()
  .describe("State of the model's process, if the node starts it on demand. Otherwise null.");

export const nodeModelShape = z
  .object({
    id: z.string(),
    context: z.int().nullable().describe("Context length in tokens. null if the node does not announce it."),
    capabilities: z
      .object(byCapability(() => z.boolean().optional()))
      .nullable()
      .describe("Capabilities of the model. null or omitted if the node does not announce them."),
    approved: z.boolean().describe("True if the node may serve the model."),
    process: processState,
  })
  .meta({ id: "NodeModel" });

export const nodeShape = z
  .object({
    object: z.literal("node"),
    id: z.string(),
    name: z.string().describe("Name of the node in the list of upstreams and in usage records."),
    status: z
      .enum(nodeStatuses)
      .describe(
        "`offline`: not connected. `draining`: gets no new requests, because an operator or the node asked for that. `pending`: none of the announced models is approved. Otherwise `online`.",
      ),
    draining,
    approved_models: approvedModels,
    announced_models: z.array(nodeModelShape).describe("Models that the node last announced."),
    tool_servers: z
      .array(
        z.object({
          name: z.string(),
          title: z.string().nullable(),
          kind: z.enum(offeredKinds).describe("`command`: a process on the node's machine."),
        }),
      )
      .describe("MCP servers that the node last announced. An MCP server of this gateway can refer to one of them."),
    environments: environmentList,
    max_concurrency: maxConcurrency,
    local,
    running: z.int().describe("Number of running requests of this process."),
    waiting: z.int().describe("Number of requests that wait in this process for a free slot."),
    concurrency: z.int().nullable().describe("Current limit of concurrent requests. null before the first request."),
    version: z.string().nullable().describe("Headrace version of the node. null before its first connection."),
    client_address: z
      .string()
      .nullable()
      .describe("Address that the node connects from. null while it is not connected."),
    replica_id: z
      .string()
      .nullable()
      .describe("Process of this gateway that holds the connection. null while the node is not connected."),
    connected_at: unixSeconds.nullable().describe("Unix time in seconds. null while the node is not connected."),
    last_seen_at: unixSeconds.nullable().describe("Unix time in seconds. null before the first connection."),
    created_at: unixSeconds,
  })
  .meta({ id: "Node" });
export type NodeWire = z.infer<typeof nodeShape>;

export const updateNodeRequest = z
  .object({
    name: name
      .optional()
      .describe(
        "Name in logs and records: lower-case letters, digits, dots, underscores and hyphens. No upstream may have the same name.",
      ),
    approved_models: approvedModels.optional(),
    environments: environmentList.optional(),
    max_concurrency: maxConcurrency.optional(),
    local: local.optional(),
    draining: draining.optional(),
  })
  .meta({ id: "UpdateNodeRequest", description: "Omitted members keep their values." });
export type UpdateNodeRequest = z.infer<typeof updateNodeRequest>;

const tokenLife = z.int().min(joinTokenSeconds.least).max(joinTokenSeconds.most);

export const createJoinTokenRequest = z
  .object({
    approved_models: approvedModels
      .nullish()
      .describe(
        `Models that the node may serve without further approval. ["${everyModel}"]: all that it announces. Default: none, an operator must approve them.`,
      ),
    environments: environmentList
      .nullish()
      .describe(`Environments whose keys may use the node's models. Default: \`${defaultEnvironments.join("`, `")}\`.`),
    expires_in: tokenLife.nullish().describe(`Lifetime of the token in seconds. Default: ${joinTokenSeconds.usual}.`),
  })
  .meta({ id: "CreateNodeJoinTokenRequest" });
export type CreateJoinTokenRequest = z.infer<typeof createJoinTokenRequest>;

export const joinTokenShape = z
  .object({
    object: z.literal("node_join_token"),
    id: z.string(),
    last4: z.string().describe("Last four characters of the token."),
    status: z.enum(joinTokenStatuses),
    approved_models: approvedModels,
    environments: environmentList,
    created_at: unixSeconds,
    expires_at: unixSeconds,
    used_at: unixSeconds.nullable().describe("Unix time in seconds. null if no node joined with the token."),
    node_id: z.string().nullable().describe("Id of the node that joined with the token."),
  })
  .meta({ id: "NodeJoinToken" });
export type JoinTokenWire = z.infer<typeof joinTokenShape>;

export const createdJoinTokenShape = joinTokenShape
  .extend({
    token: z.string().describe("The token. It is shown only in this response."),
    gateway_url: z.string().describe("Public URL of the gateway, which the machine joins."),
  })
  .meta({ id: "CreatedNodeJoinToken" });
export type CreatedJoinTokenWire = z.infer<typeof createdJoinTokenShape>;

export const joinRequest = z
  .object({
    token: z.string().min(1).max(256).describe("A join token, from POST /v1/admin/node-tokens."),
    name: name.describe("Name in logs and records: lower-case letters, digits, dots, underscores and hyphens."),
    public_key: z
      .string()
      .length(43)
      .describe(
        "Ed25519 public key of the node: 32 bytes as base64url, without padding. The private key never leaves the node.",
      ),
  })
  .meta({ id: "JoinRequest" });
export type JoinRequest = z.infer<typeof joinRequest>;

/** The answer that a machine gets when it joins as a node. */
export const joinedShape = z
  .object({
    object: z.literal("node"),
    id: z.string(),
    name: z.string(),
    approved_models: approvedModels,
    gateway_url: z.string().describe("Public URL of the gateway. The node proves its identity only to this URL."),
    created_at: unixSeconds,
  })
  .meta({ id: "JoinedNode" });
export type JoinedWire = z.infer<typeof joinedShape>;
