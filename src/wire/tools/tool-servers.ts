// Servers of tools and what they say of their tools, as operators see them.
import { z } from "zod";
import { environments } from "../../domain/api-key.ts";
import { definitionStates } from "../../domain/tools/tool-definition.ts";
import { toolApprovals, toolSharings } from "../../domain/tools/tool-server.ts";

export const toolServerShape = z
  .object({
    object: z.literal("tool_server"),
    name: z.string(),
    title: z.string().nullable(),
    description: z.string().nullable(),
    place: z.enum(["http", "command", "node"]).describe("Where it is; `command`: a process of this machine."),
    url: z.string().nullable().describe("Null unless it is reached over HTTP."),
    credentials: z
      .enum(["none", "headers", "person"])
      .describe("The identity by which it is asked: nobody, the same headers for all, or each person."),
    environments: z.array(z.enum(environments)).nullable().describe("Environments whose keys may use it; null: all."),
    accounts: z.array(z.string()).nullable().describe("Accounts that may use it; null: all."),
    tools: z.array(z.string()).nullable().describe("Tools that are offered at all; null: all."),
    approval: z.enum(toolApprovals),
    sharing: z.enum(toolSharings),
    timeout_seconds: z.number(),
    max_result_bytes: z.int(),
    max_concurrency: z.int(),
    enabled: z.boolean(),
    waiting: z.int().describe("Tools and prompts that wait for approval: they are new, or say something else now."),
  })
  .meta({ id: "ToolServer" });
export type ToolServerWire = z.output<typeof toolServerShape>;

export const definitionShape = z
  .object({
    object: z.literal("tool_definition"),
    server: z.string(),
    kind: z.enum(["tool", "prompt"]),
    name: z.string().describe("The server's own name of it."),
    state: z.enum(definitionStates).describe("`changed`: it was approved, and says something else now."),
    digest: z.string().describe("The digest of what it says now, by which it is decided about."),
    definition: z.record(z.string(), z.unknown()).describe("What it says now."),
    approved: z.record(z.string(), z.unknown()).nullable().describe("What it said when it was approved; null: never."),
    seen_at: z.int().describe("Unix seconds."),
    decided_at: z.int().nullable(),
    decided_by: z.string().nullable().describe("Null where nobody decided: it was there at first."),
  })
  .meta({ id: "ToolDefinition" });
export type DefinitionWire = z.output<typeof definitionShape>;

export const decideDefinitionRequest = z
  .strictObject({
    kind: z.enum(["tool", "prompt"]).optional().describe("Left out: `tool`."),
    name: z.string().min(1).max(256),
    digest: z.string().regex(/^[0-9a-f]{64}$/),
    decision: z.enum(["approved", "refused"]),
  })
  .meta({ id: "DecideToolDefinition" });
