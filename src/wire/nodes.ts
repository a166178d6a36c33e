// The shapes of nodes and join tokens on the wire: as operators manage them, and as a node joins.

import { z } from "zod";
import { defaultEnvironments, environments } from "../domain/api-key.ts";
import { byCapability } from "../domain/models/capabilities.ts";
import { modelProcessStates } from "../domain/models/model-process-state.ts";
import { everyModel, maxNodeModels } from "../domain/models/node.ts";
import { offeredKinds } from "../domain/tools/node-tools.ts";
import { modelId, unixSeconds } from "./parts.ts";

export const nodeStatuses = ["pending", "online", "offline", "draining"] as const;
export type NodeStatus = (typeof nodeStatuses)[number];
export const joinTokenStatuses = ["active", "used", "expired"] as const;
export type JoinTokenStatus = (typeof joinTokenStatuses)[number];

/** How long a join token lets a machine in. */
export const joinTokenSeconds = { least: 60, usual: 3600, most: 604_800 } as const;

const name = z.string().min(1).max(63);
const approvedModels = z
  .array(modelId)
  .max(maxNodeModels)
  .describe(
    `Ids of models that it may serve, of those that it announces; ["${everyModel}"] for whatever it announces, now and later.`,
  );
const environmentList = z
  .array(z.enum(environments))
  .min(1)
  .max(environments.length)
  .describe("Environments whose keys may use its models.");
const maxConcurrency = z
  .int()
  .min(1)
  .max(1_000_000)
  .nullable()
  .describe("Most requests at once; more wait in the queue. null: as it announces, else measured.");
const local = z
  .boolean()
  .describe("Whether requests of keys with `never_leaves` may go there, as nothing that it is sent goes further.");
const draining = z.boolean().describe("While true, it finishes what it has and gets nothing new. Kept over a restart.");

const processState = z
  .enum(modelProcessStates)
  .nullable()
  .describe("The state of the process that serves it, where the node starts that for requests; else null.");

export const nodeModelShape = z
  .object({
    id: z.string(),
    context: z.int().nullable().describe("Tokens; null where it does not say."),
    capabilities: z
      .object(byCapability(() => z.boolean().optional()))
      .nullable()
      .describe("What it can do; null, or left out, where it does not say."),
    approved: z.boolean().describe("Whether it may serve it."),
    process: processState,
  })
  .meta({ id: "NodeModel" });

export const nodeShape = z
  .object({
    object: z.literal("node"),
    id: z.string(),
    name: z.string().describe("The name that it has among the upstreams and in usage records."),
    status: z
      .enum(nodeStatuses)
      .describe(
        "`offline`: it is not connected. `draining`: it gets nothing new, because an operator or the node says so. `pending`: none of the models that it announces is approved. Else `online`.",
      ),
    draining,
    approved_models: approvedModels,
    announced_models: z.array(nodeModelShape).describe("What it last said that it serves."),
    tool_servers: z
      .array(
        z.object({
          name: z.string(),
          title: z.string().nullable(),
          kind: z.enum(offeredKinds).describe("`command`: a process of that machine."),
        }),
      )
      .describe("MCP servers that it last said it offers; one here can be at one of these."),
    environments: environmentList,
    max_concurrency: maxConcurrency,
    local,
    running: z.int().describe("Requests that it works on for this process."),
    waiting: z.int().describe("Requests that wait here for a place."),
    concurrency: z.int().nullable().describe("How many it takes at once now; null where nothing was sent to it yet."),
    version: z.string().nullable().describe("The version of its Headrace; null before it was connected."),
    client_address: z.string().nullable().describe("Where it connects from; null while it is not connected."),
    replica_id: z
      .string()
      .nullable()
      .describe("Which process of this gateway holds its connection; null while it is not connected."),
    connected_at: unixSeconds.nullable().describe("Unix time in seconds; null while it is not connected."),
    last_seen_at: unixSeconds.nullable().describe("Unix time in seconds; null before it was connected."),
    created_at: unixSeconds,
  })
  .meta({ id: "Node" });
export type NodeWire = z.infer<typeof nodeShape>;

export const updateNodeRequest = z
  .object({
    name: name
      .optional()
      .describe("For logs and records: lower-case letters, digits, dots, underscores and hyphens; no upstream's."),
    approved_models: approvedModels.optional(),
    environments: environmentList.optional(),
    max_concurrency: maxConcurrency.optional(),
    local: local.optional(),
    draining: draining.optional(),
  })
  .meta({ id: "UpdateNodeRequest", description: "What is left out stays as it is." });
export type UpdateNodeRequest = z.infer<typeof updateNodeRequest>;

const tokenLife = z.int().min(joinTokenSeconds.least).max(joinTokenSeconds.most);

export const createJoinTokenRequest = z
  .object({
    approved_models: approvedModels
      .nullish()
      .describe(
        `What the node that joins may serve at once; ["${everyModel}"] for all that it announces. Default: nothing before an operator approved it.`,
      ),
    environments: environmentList
      .nullish()
      .describe(`Environments whose keys may use its models. Default: \`${defaultEnvironments.join("`, `")}\`.`),
    expires_in: tokenLife
      .nullish()
      .describe(`Seconds for which it lets a machine in. Default ${joinTokenSeconds.usual}.`),
  })
  .meta({ id: "CreateNodeJoinTokenRequest" });
export type CreateJoinTokenRequest = z.infer<typeof createJoinTokenRequest>;

export const joinTokenShape = z
  .object({
    object: z.literal("node_join_token"),
    id: z.string(),
    last4: z.string().describe("Its last four characters."),
    status: z.enum(joinTokenStatuses),
    approved_models: approvedModels,
    environments: environmentList,
    created_at: unixSeconds,
    expires_at: unixSeconds,
    used_at: unixSeconds.nullable().describe("Unix time in seconds; null where nobody joined with it."),
    node_id: z.string().nullable().describe("The node that joined with it."),
  })
  .meta({ id: "NodeJoinToken" });
export type JoinTokenWire = z.infer<typeof joinTokenShape>;

export const createdJoinTokenShape = joinTokenShape
  .extend({
    token: z.string().describe("The token itself, shown in this answer alone."),
    gateway_url: z.string().describe("What the gateway calls itself: where the machine joins."),
  })
  .meta({ id: "CreatedNodeJoinToken" });
export type CreatedJoinTokenWire = z.infer<typeof createdJoinTokenShape>;

export const joinRequest = z
  .object({
    token: z.string().min(1).max(256).describe("A join token, from POST /v1/admin/node-tokens."),
    name: name.describe("For logs and records: lower-case letters, digits, dots, underscores and hyphens."),
    public_key: z
      .string()
      .length(43)
      .describe("Its Ed25519 public key: 32 bytes as base64url, without padding. The private key stays with it."),
  })
  .meta({ id: "JoinRequest" });
export type JoinRequest = z.infer<typeof joinRequest>;

/** What a machine learns of itself as it joins. */
export const joinedShape = z
  .object({
    object: z.literal("node"),
    id: z.string(),
    name: z.string(),
    approved_models: approvedModels,
    gateway_url: z.string().describe("What the gateway calls itself: the node proves who it is to this one alone."),
    created_at: unixSeconds,
  })
  .meta({ id: "JoinedNode" });
export type JoinedWire = z.infer<typeof joinedShape>;
