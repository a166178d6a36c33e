// Reads the tools and the tool choice of a chat request, including the legacy `functions`.
import { fieldError } from "../../../base/errors.ts";
import { cacheOf } from "../conversation/cache-marks.ts";
import type { CallKind, Tool, ToolChoice } from "../conversation/conversation.ts";
import { booleanOf, isObject, type Json, listOf, objectOf, textOf } from "./json-value.ts";

export interface ToolUse {
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice | undefined;
  readonly parallelCalls?: boolean | undefined;
}

/** Reads the tools and the tool choice. Throws `invalid_request` that names the field for an unknown tool or choice. */
export function readToolUse(body: Json): ToolUse {
  const all = listOf(body["tools"]).map((tool, index) => readTool(objectOf(tool), `tools[${index}]`));
  const parallelCalls = booleanOf(body["parallel_tool_calls"]);
  if (all.length === 0 && listOf(body["functions"]).length > 0) return readOlder(body);
  const choice = body["tool_choice"];
  const parallel = parallelCalls === undefined ? {} : { parallelCalls };
  if (isObject(choice) && choice["type"] === "allowed_tools") {
    const { mode, tools } = objectOf(choice["allowed_tools"]);
    const allowed = new Set(listOf(tools).map((tool) => keyOfAllowed(objectOf(tool))));
    const type = mode === "required" ? "required" : "auto";
    return { tools: all.filter(({ kind, name }) => allowed.has(`${kind} ${name}`)), toolChoice: { type }, ...parallel };
  }
  const toolChoice = choice === undefined || choice === null ? undefined : readChoice(choice);
  return { tools: all, ...(toolChoice ? { toolChoice } : {}), ...parallel };
}

function readTool(tool: Json, place: string): Tool {
  const { type } = tool;
  if (type !== "function" && type !== "custom") {
    throw fieldError(
      `${place}.type`,
      `\`${String(type)}\` is run by the model's maker, and this model is asked in another format; leave it out, or describe it as a function that you run.`,
    );
  }
  const described = tool[type];
  if (!isObject(described)) throw fieldError(`${place}.${type}`, "is missing: it holds the tool's name.");
  const cache = cacheOf(tool) ?? cacheOf(described);
  const read = type === "function" ? functionOf(described, place) : customOf(described, place);
  return { ...read, ...(cache ? { cache } : {}) };
}

function functionOf(described: Json, place: string): Tool {
  const description = textOf(described["description"]);
  const strict = booleanOf(described["strict"]);
  const { parameters } = described;
  return {
    kind: "function",
    name: nameOf(described, place),
    ...(description === undefined ? {} : { description }),
    ...(isObject(parameters) ? { parameters } : {}),
    ...(strict === undefined ? {} : { strict }),
    place,
  };
}

function customOf(described: Json, place: string): Tool {
  const description = textOf(described["description"]);
  const { format } = described;
  // In chat completions the grammar is a separate object. In Responses its members are next to `type`.
  const flat = isObject(format) && isObject(format["grammar"]) ? { type: "grammar", ...format["grammar"] } : format;
  return {
    kind: "custom",
    name: nameOf(described, place),
    ...(description === undefined ? {} : { description }),
    ...(isObject(flat) ? { format: flat } : {}),
    place,
  };
}

function nameOf(described: Json, place: string): string {
  const name = textOf(described["name"]);
  if (name === undefined) throw fieldError(`${place}.name`, "is missing.");
  return name;
}

function keyOfAllowed(tool: Json): string {
  const kind: CallKind = tool["type"] === "custom" ? "custom" : "function";
  return `${kind} ${String(objectOf(tool[kind])["name"] ?? tool["name"])}`;
}

function readChoice(choice: unknown): ToolChoice {
  if (choice === "auto" || choice === "none" || choice === "required") return { type: choice };
  // Mistral uses `any` for `required`.
  if (choice === "any") return { type: "required" };
  const { type } = objectOf(choice);
  if (type === "function" || type === "custom") {
    const called = objectOf(objectOf(choice)[type]);
    return { type: "tool", kind: type, name: nameOf(called, `tool_choice.${type}`) };
  }
  throw fieldError(
    "tool_choice",
    'must be "auto", "none" or "required", or name a function, a custom tool or allowed_tools: this model is asked in another format, which knows no others.',
  );
}

/** Reads legacy `functions`, which allow only one call at a time. */
function readOlder(body: Json): ToolUse {
  const tools = listOf(body["functions"]).map((one, index) => functionOf(objectOf(one), `functions[${index}]`));
  const choice = body["function_call"];
  if (isObject(choice)) {
    return {
      tools,
      toolChoice: { type: "tool", kind: "function", name: nameOf(choice, "function_call") },
      parallelCalls: false,
    };
  }
  const toolChoice: ToolChoice | undefined = choice === "none" || choice === "auto" ? { type: choice } : undefined;
  return { tools, ...(toolChoice ? { toolChoice } : {}), parallelCalls: false };
}
