// Reads `tools`, `tool_choice` and `parallel_tool_calls`: which tools the model may or must call.
import type { ChatModelFunctions, GbnfJsonSchema } from "node-llama-cpp";
import { anyObjectGrammar } from "../json/json-grammar.ts";
import { schemaGrammar, type WorkBudget } from "../json/json-schema-grammar.ts";
import type { CallableTool } from "../reply/reply-reader.ts";
import { Fields, isObject } from "./fields.ts";
import { invalid, RequestError } from "./request-error.ts";

export interface ToolUse {
  /** The functions that the chat template shows to the model. */
  functions: ChatModelFunctions;
  /** The tools that the model may call. */
  callable: CallableTool[];
  /** True if the reply must be a tool call. */
  forced: boolean;
  parallel: boolean;
}

/** The most tools in a request, as in the gateway. */
const maxTools = 512;
/**
 * The most work, in units, that the schemas of all tools may cause together, so that a request does not delay
 * others.
 */
const maxSchemaWork = 20_000;
/** The OpenAI API's rule for function names. */
const namePattern = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * Reads which tools a request may call. Undefined if it has none or forbids calls. "ignored" if the model has no
 * tool support (`supported`), because agents always send their tools.
 */
export function readToolUse(fields: Fields, supported: boolean): ToolUse | "ignored" | undefined {
  for (const key of ["functions", "function_call"]) {
    if (fields.value(key) !== undefined)
      throw invalid(`${key} is not supported; send "tools" and "tool_choice" instead.`, key);
  }
  const choice = readChoice(fields);
  if (choice === "none") return undefined;
  const tools = fields.array("tools") ?? [];
  if (tools.length === 0) {
    if (choice === "auto") return undefined;
    throw invalid(`tool_choice asks for a call, so "tools" must hold at least one tool.`, "tool_choice");
  }
  if (tools.length > maxTools) throw invalid(`tools may hold at most ${maxTools} tools.`);
  if (!supported) {
    if (choice === "auto") return "ignored";
    throw invalid(
      `tool_choice: this model cannot be made to call a tool, as its chat template has no place for tools. Send "auto" or "none" for an answer in text, or use another model.`,
      "tool_choice",
    );
  }
  const budget = { remaining: maxSchemaWork };
  const read = tools.map((tool, index) => readTool(tool, index, budget));
  const named = typeof choice === "object" ? choice.name : undefined;
  const callable = read.filter(({ name }) => named === undefined || name === named);
  if (callable.length === 0) throw invalid(`tool_choice.function.name "${named}" is not among the tools.`);
  if (new Set(read.map(({ name }) => name)).size < read.length) throw invalid("tools: two tools have the same name.");
  return {
    functions: Object.fromEntries(read.map(({ name, shown }) => [name, shown])),
    callable: callable.map(({ name, grammar }) => ({ name, grammar })),
    forced: choice === "required" || typeof choice === "object",
    parallel: (fields.boolean("parallel_tool_calls") ?? true) && named === undefined,
  };
}

type ToolChoice = "auto" | "none" | "required" | { name: string };

function readChoice(fields: Fields): ToolChoice {
  const choice = fields.value("tool_choice");
  if (choice === undefined || choice === "auto" || choice === "none" || choice === "required") return choice ?? "auto";
  const target = isObject(choice) && choice["type"] === "function" ? choice["function"] : undefined;
  if (isObject(target) && typeof target["name"] === "string") return { name: target["name"] };
  throw invalid(
    'tool_choice must be "auto", "none", "required", or {"type": "function", "function": {"name": "…"}}.',
    "tool_choice",
  );
}

function readTool(entry: unknown, index: number, budget: WorkBudget) {
  const path = `tools[${index}]`;
  const target = isObject(entry) && entry["type"] === "function" ? entry["function"] : undefined;
  if (!isObject(target)) throw invalid(`${path} must be {"type": "function", "function": {"name": "…"}}.`);
  const fields = new Fields(target, `${path}.function.`);
  const name = fields.string("name");
  if (name === undefined || !namePattern.test(name)) {
    throw invalid(`${path}.function.name must be 1 to 64 letters, digits, underscores or hyphens.`);
  }
  const parameters = fields.value("parameters");
  const schema =
    isObject(parameters) && parameters["type"] === undefined ? { ...parameters, type: "object" } : parameters;
  if (schema !== undefined && (!isObject(schema) || schema["type"] !== "object")) {
    throw invalid(`${path}.function.parameters must be a JSON Schema of type "object".`);
  }
  const strict = fields.boolean("strict") ?? false;
  const description = fields.string("description");
  return {
    name,
    shown: {
      ...(description === undefined ? {} : { description }),
      // The library only shows this schema to the model. Our own grammar enforces it.
      params: schema as GbnfJsonSchema | undefined,
    },
    grammar: argumentsGrammar(
      schema ?? { type: "object", properties: {} },
      `${path}.function.parameters`,
      strict,
      budget,
    ),
  };
}

/**
 * Returns the grammar of a tool's arguments. Without `strict`, a schema that no grammar can express gets a
 * grammar for any JSON object, because the model has read the schema.
 */
function argumentsGrammar(schema: unknown, path: string, strict: boolean, budget: WorkBudget): string {
  if (strict) return schemaGrammar(schema, { path, strict, budget });
  try {
    return schemaGrammar(schema, { path, strict, budget });
  } catch (error) {
    if (error instanceof RequestError) return anyObjectGrammar();
    throw error;
  }
}
