// The model list in the format that Codex reads. If one entry lacks a member, Codex ignores the whole list.
import { z } from "zod";
import type { Model } from "../../../domain/models/model.ts";
import { codexInstructions } from "./codex-instructions.ts";

/**
 * `ModelInfo` of codex-rs/protocol/src/openai_models.rs in Codex 0.144. Later versions of Codex ignore unknown members.
 */
export const codexModelShape = z
  .object({
    slug: z.string().describe("Name to request."),
    display_name: z.string(),
    description: z.string().nullable(),
    default_reasoning_level: z.null().describe("Codex requests no effort unless the user chooses one."),
    supported_reasoning_levels: z.array(z.object({ effort: z.string(), description: z.string() })),
    shell_type: z.literal("shell_command"),
    visibility: z.literal("list"),
    supported_in_api: z.literal(true),
    priority: z.int().describe("Position in the list. Codex uses the first model unless the user chooses one."),
    additional_speed_tiers: z.array(z.string()),
    service_tiers: z.array(z.string()),
    availability_nux: z.null(),
    upgrade: z.null(),
    base_instructions: z.string().describe("Prompt that Codex sends with each request."),
    include_skills_usage_instructions: z.literal(true),
    supports_reasoning_summaries: z.literal(true).describe("True if Codex may send `reasoning`."),
    supports_reasoning_summary_parameter: z.literal(true),
    default_reasoning_summary: z.literal("none"),
    support_verbosity: z.literal(false),
    default_verbosity: z.null(),
    apply_patch_tool_type: z.null().describe("Codex patches files by a command, which every model can run."),
    web_search_tool_type: z.literal("text"),
    truncation_policy: z
      .object({ mode: z.literal("tokens"), limit: z.int() })
      .describe("Maximum size of a tool's output that Codex keeps."),
    supports_parallel_tool_calls: z.literal(true),
    experimental_supported_tools: z.array(z.string()),
    input_modalities: z.array(z.enum(["text", "image"])),
    context_window: z.int().optional().describe("Context length in tokens. Omitted if unknown."),
    max_context_window: z.int().optional(),
    effective_context_window_percent: z.int(),
    supports_search_tool: z.literal(false),
    use_responses_lite: z.literal(false),
  })
  .meta({ id: "CodexModel" });
type CodexModel = z.infer<typeof codexModelShape>;

/** The reasoning levels of every model, because models declare none. Codex sends the first if it must send one. */
const reasoningLevels = [
  { effort: "none", description: "No reasoning, where the model can do without" },
  { effort: "low", description: "Short reasoning, fast answers" },
  { effort: "medium", description: "For most tasks" },
  { effort: "high", description: "Long reasoning, for hard problems" },
];

/** Maximum tokens of a tool call's output. Codex uses the same default for OpenAI's models. */
const defaultOutputTokens = 10_000;
/** Maximum share of the context for the output of one tool call. */
const outputShare = 0.1;

/** Maximum entries of the list. Each contains all instructions, which are 7 KB long. */
const maxEntries = 500;

/** Returns an entry for each listed model name, in order. */
export function codexModels(names: readonly { name: string; model: Model }[]): CodexModel[] {
  return names
    .filter(({ model }) => model.capabilities?.chat !== false)
    .slice(0, maxEntries)
    .map(({ name, model }, index) => codexModel(name, model, index + 1));
}

function codexModel(name: string, { id, context, ownedBy }: Model, priority: number): CodexModel {
  const limit =
    context === undefined ? defaultOutputTokens : Math.min(defaultOutputTokens, Math.ceil(context * outputShare));
  return {
    ...{ slug: name, display_name: name, description: name === id ? ownedBy : `Another name of ${id}` },
    ...{ default_reasoning_level: null, supported_reasoning_levels: reasoningLevels },
    ...{ shell_type: "shell_command", visibility: "list", supported_in_api: true, priority },
    ...{ additional_speed_tiers: [], service_tiers: [], availability_nux: null, upgrade: null },
    ...{ base_instructions: codexInstructions, include_skills_usage_instructions: true },
    ...{ supports_reasoning_summaries: true, supports_reasoning_summary_parameter: true },
    ...{ default_reasoning_summary: "none", support_verbosity: false, default_verbosity: null },
    ...{ apply_patch_tool_type: null, web_search_tool_type: "text" },
    truncation_policy: { mode: "tokens", limit },
    ...{ supports_parallel_tool_calls: true, experimental_supported_tools: [] },
    input_modalities: ["text", "image"],
    ...(context === undefined ? {} : { context_window: context, max_context_window: context }),
    ...{ effective_context_window_percent: 95, supports_search_tool: false, use_responses_lite: false },
  };
}
