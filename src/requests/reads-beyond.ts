// Reports whether a model server may add something to the prompt: search results, pages, files or stored prompts.
import type { Dialect } from "./dialects/dialect.ts";
import { otherMembersOf } from "./facts.ts";

type Json = Readonly<Record<string, unknown>>;

/**
 * Matches the types of tools that clients run themselves. All other tools run at a vendor, which adds their results to
 * the prompt.
 */
const clientTools = /^(?:function|custom|local_shell|apply_patch|(?:bash|text_editor|memory|computer)_\d{8})$/;
/** Matches the names of members that make a server search or fetch, or that refer to data stored by the server. */
const readingMembers = /^(?:search_|web_search|enable_search$|plugins$|mcp_servers$|container$|return_images$)/;
/** Matches the types of parts and blocks whose content is in the body. */
const writtenParts = new RegExp(
  `^(?:${[
    "(?:input_|output_|summary_|reasoning_)?text|refusal|(?:redacted_)?thinking",
    "message|reasoning|compaction|search_result",
    "[a-z_]*tool_use|[a-z_]*tool_result|[a-z_]*_call|[a-z_]*_call_output",
  ].join("|")})$`,
);

/**
 * Reports whether the server may add something to the prompt. Media in the prompt do not count here, because
 * `Dialect.hasMedia` reports them.
 */
export function readsBeyond(
  dialect: Pick<Dialect, "generates" | "limitMembers" | "promptMember">,
  body: Json,
): boolean {
  return (dialect.generates && namesSources(dialect, body)) || hasOtherPart(body[dialect.promptMember]);
}

function namesSources(dialect: Pick<Dialect, "limitMembers">, body: Json): boolean {
  return (
    hasServerTool(body["tools"]) ||
    Object.entries(body).some(([name, value]) => readingMembers.test(name) && isSaid(value)) ||
    // If `prompt` is an object, it refers to a template stored at OpenAI. In the completions format, `prompt` is a
    // text.
    isObject(body["prompt"]) ||
    otherMembersOf(dialect, body).some((name) => namesSomething(body[name]))
  );
}

function hasServerTool(tools: unknown): boolean {
  if (!Array.isArray(tools)) return false;
  return tools.some((tool: unknown) => {
    if (!isObject(tool)) return true;
    const { type = "custom", tools: inner } = tool;
    if (type === "namespace") return hasServerTool(inner);
    return type !== null && !clientTools.test(String(type));
  });
}

function hasOtherPart(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasOtherPart);
  if (!isObject(value)) return false;
  const { type, content, output } = value;
  const isOther = typeof type === "string" ? !writtenParts.test(type) : type == null && !isWritten(value);
  return isOther || hasOtherPart(content) || hasOtherPart(output);
}

/** Reports whether an object without a type is a message or a text. */
function isWritten({ role, text }: Json): boolean {
  return typeof role === "string" || typeof text === "string";
}

function isSaid(value: unknown): boolean {
  return value !== null && value !== undefined && value !== false;
}

/** Reports whether a value names a source. A number or `false` does not name one. */
function namesSomething(value: unknown): boolean {
  return isSaid(value) && typeof value !== "number";
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
