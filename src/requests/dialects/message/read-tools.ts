// Reads the tools of a Messages request, and the tool choice.
import { fieldError } from "../../../base/errors.ts";
import type { RequestPath, Tool, ToolChoice } from "../conversation/conversation.ts";
import { fitsStrict } from "../conversation/strict-schema.ts";
import { cacheOf } from "./blocks.ts";
import { clientToolOf } from "./client-tools.ts";
import { isObject, type Json, objectOf, objectsOf, textOf } from "./json.ts";

/**
 * Reads the tools. `loaded` holds the names of the tools that the conversation loaded. Throws `invalid_request` for a
 * tool that Anthropic runs, or that only Anthropic's models know.
 */
export function readTools(body: Json, loaded: ReadonlySet<string>): Tool[] {
  const servers = body["mcp_servers"];
  if (Array.isArray(servers) && servers.length > 0) {
    throw fieldError(
      "mcp_servers",
      "Anthropic connects to these servers itself, and whoever serves this model does not; let the client connect to them and send their tools as `tools`, or ask a model of Anthropic.",
    );
  }
  return objectsOf(body["tools"]).flatMap((tool, i) => {
    const isOffered = tool["defer_loading"] !== true || loaded.has(textOf(tool["name"]) ?? "");
    const read = readTool(tool, `tools[${i}]`);
    return isOffered ? [read] : [];
  });
}

function readTool(tool: Json, place: RequestPath): Tool {
  const type = textOf(tool["type"]) ?? "custom";
  const known = type === "custom" ? undefined : clientToolOf(tool);
  if (type !== "custom" && !known) {
    throw fieldError(
      `${place}.type`,
      `\`${type}\` is run by Anthropic, or known to its models alone; leave it out, send a tool of your own with an \`input_schema\`, or ask a model of Anthropic.`,
    );
  }
  const name = textOf(tool["name"]);
  if (name === undefined) throw fieldError(`${place}.name`, "a tool has a name.");
  const schema = tool["input_schema"];
  return {
    kind: "function",
    name,
    description: textOf(tool["description"]) ?? known?.description,
    parameters: known?.parameters ?? (isObject(schema) ? schema : undefined),
    strict: typeof tool["strict"] === "boolean" ? tool["strict"] && fitsStrict(schema) : undefined,
    cache: cacheOf(tool),
    place,
  };
}

export interface ReadChoice {
  readonly toolChoice?: ToolChoice | undefined;
  readonly parallelCalls?: boolean | undefined;
}

/** Reads the tool choice. Throws `invalid_request` if the choice has none of the four types. */
export function readToolChoice(value: unknown): ReadChoice {
  if (!isObject(value)) return {};
  const { disable_parallel_tool_use } = objectOf(value);
  const parallelCalls = typeof disable_parallel_tool_use === "boolean" ? !disable_parallel_tool_use : undefined;
  return { toolChoice: choiceOf(value), parallelCalls };
}

function choiceOf({ type, name }: Json): ToolChoice {
  if (type === "auto" || type === "none") return { type };
  if (type === "any") return { type: "required" };
  if (type === "tool" && typeof name === "string") return { type: "tool", kind: "function", name };
  throw fieldError("tool_choice.type", "it is one of `auto`, `any`, `tool` and `none`.");
}
