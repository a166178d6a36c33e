// Reads the tools of a Responses request, and the tool choice.
import { fieldError } from "../../../base/errors.ts";
import { cacheOf } from "../conversation/cache-marks.ts";
import type { CallKind, Tool, ToolChoice } from "../conversation/conversation.ts";
import { isObject, type Json, objectsOf, textOf } from "./json.ts";

/**
 * The vendor's own tools that the client runs, as functions. Their arguments are the ones that the vendor's models
 * write.
 */
const ownTools: ReadonlyMap<string, Json> = new Map([
  [
    "local_shell",
    {
      type: "object",
      properties: {
        type: { type: "string", enum: ["exec"] },
        command: { type: "array", items: { type: "string" }, description: "The program and its arguments." },
        working_directory: { type: "string" },
        timeout_ms: { type: "integer" },
        env: { type: "object", additionalProperties: { type: "string" } },
      },
      required: ["type", "command"],
    },
  ],
]);

export interface ReadTools {
  tools: Tool[];
  /** Places of those offered tools that only a vendor can run. */
  leftOut: string[];
}

export function readTools(value: unknown, place: string): ReadTools {
  const read: ReadTools = { tools: [], leftOut: [] };
  for (const [index, tool] of objectsOf(value).entries()) readTool(tool, `${place}[${index}]`, undefined, read);
  return read;
}

function readTool(tool: Json, place: string, namespace: string | undefined, read: ReadTools): void {
  const type = textOf(tool["type"]) ?? "function";
  const description = textOf(tool["description"]);
  const name = textOf(tool["name"]);
  if (type === "namespace") {
    for (const [index, inner] of objectsOf(tool["tools"]).entries()) {
      readTool(inner, `${place}.tools[${index}]`, name, read);
    }
  } else if (type === "function" || type === "custom") {
    if (name === undefined) throw fieldError(`${place}.name`, "is required: the name of the tool.");
    const base = { kind: type, name, namespace, description, cache: cacheOf(tool), place } as const;
    if (type === "custom") read.tools.push({ ...base, format: isObject(tool["format"]) ? tool["format"] : undefined });
    else read.tools.push({ ...base, ...functionMembers(tool) });
  } else if (ownTools.has(type)) {
    read.tools.push({
      kind: "function",
      name: type,
      description: "Runs a command on the user's machine.",
      parameters: ownTools.get(type),
      place,
    });
  } else {
    read.leftOut.push(place);
  }
}

function functionMembers(tool: Json): Pick<Tool, "parameters" | "strict"> {
  const parameters = isObject(tool["parameters"]) ? tool["parameters"] : undefined;
  return { parameters, strict: typeof tool["strict"] === "boolean" ? tool["strict"] : undefined };
}

/**
 * Returns the tool choice, and the tools that it allows. Throws if the choice demands a tool that only its vendor can
 * run.
 */
export function readChoice(
  choice: unknown,
  tools: readonly Tool[],
): { choice: ToolChoice | undefined; tools: readonly Tool[] } {
  if (choice === "auto" || choice === "none" || choice === "required") return { choice: { type: choice }, tools };
  if (choice === undefined || choice === null) return { choice: undefined, tools };
  if (!isObject(choice))
    throw fieldError("tool_choice", "must be none, auto or required, or an object that names a tool.");
  const { type } = choice;
  if (type === "allowed_tools") return allowed(choice, tools);
  if (type === "function" || type === "custom") return { choice: toolOf(choice, type, "tool_choice.name"), tools };
  if (typeof type === "string" && tools.some(({ name }) => name === type)) {
    return { choice: { type: "tool", kind: "function", name: type }, tools };
  }
  throw fieldError(
    "tool_choice.type",
    `\`${String(type)}\` is a tool that only its maker runs. Choose a function, or ask a model whose server has the tool.`,
  );
}

function toolOf(choice: Json, kind: CallKind, place: string): ToolChoice {
  const name = textOf(choice["name"]);
  if (name === undefined) throw fieldError(place, "is required: the name of the tool.");
  return { type: "tool", kind, name, namespace: textOf(choice["namespace"]) };
}

function allowed(choice: Json, tools: readonly Tool[]): { choice: ToolChoice; tools: readonly Tool[] } {
  const names = new Set(objectsOf(choice["tools"]).map((tool) => textOf(tool["name"]) ?? textOf(tool["type"])));
  const named = tools.filter(
    ({ name, namespace }) => names.has(name) || (namespace !== undefined && names.has(namespace)),
  );
  return { choice: { type: choice["mode"] === "required" ? "required" : "auto" }, tools: named };
}
