// Converts requests in the format of another API that clients such as Cursor send to chat completions.
import { fieldError } from "../../../base/errors.ts";
import type { Seal } from "../../../domain/seal.ts";
import { responseRequest } from "../../../wire/responses.ts";
import { EngineTools } from "../conversation/call-names.ts";
import type { Rewriting } from "../dialect.ts";
import { readItems } from "../response/read-items.ts";
import { outputOf } from "../response/read-request.ts";
import { isObject, type Json, listOf, objectOf, textOf } from "./json-value.ts";
import { rulesOf } from "./server-rules.ts";
import { writeMessages } from "./write-messages.ts";
import { formatOf } from "./write-request.ts";

const anyServer = { rules: rulesOf(undefined), model: "", keepsCustom: true };

/**
 * Returns the body in the format of chat completions. It may be a Responses request with `input` instead of `messages`,
 * or have tools in the format of Responses or Messages. Returns undefined if the body already has the right format.
 */
export const inChatForm: Rewriting = (body, validate) => {
  const isResponse = isAbsent(body["messages"]) && !isAbsent(body["input"]);
  const tools = listOf(body["tools"]);
  const nested = tools.map((tool) => (isObject(tool) ? toolOf(tool) : tool));
  if (!isResponse && nested.every((tool, index) => tool === tools[index])) return undefined;
  if (isResponse) validate(responseRequest, { ...body, tools: null, tool_choice: null });
  const written: Record<string, unknown> = isResponse ? chatOf(body) : { ...body };
  if (tools.length > 0) written["tools"] = nested;
  if (isObject(body["tool_choice"])) written["tool_choice"] = choiceOf(body["tool_choice"]);
  return written;
};

/**
 * Does not encrypt anything, because answers in the format of chat completions contain no encrypted data that a client
 * could send back.
 */
const noSeal: Seal = { seal: (text) => text, open: () => undefined };

function chatOf(body: Json): Record<string, unknown> {
  const { previous_response_id: previous, conversation, prompt, background, ...here } = body;
  const elsewhere = { previous_response_id: previous, conversation, prompt, background: background || null };
  for (const [name, value] of Object.entries(elsewhere)) if (!isAbsent(value)) throw onlyInResponses(name);
  const { input, instructions, text, reasoning, max_output_tokens: limit, include, truncation, ...others } = here;
  const { turns, tools, leftOut } = readItems(input, noSeal);
  const [unread] = [...leftOut, ...tools.map(({ place }) => place)];
  if (unread !== undefined) throw onlyInResponses(unread);
  const first = textOf(instructions);
  const system = { role: "system", parts: [{ type: "text", text: first ?? "" }], place: "instructions" } as const;
  const messages = writeMessages(first === undefined ? turns : [system, ...turns], new EngineTools([]), anyServer);
  const output = outputOf(text);
  const said = {
    response_format: output && formatOf(output),
    verbosity: objectOf(text)["verbosity"],
    reasoning_effort: objectOf(reasoning)["effort"],
    max_completion_tokens: limit,
  };
  const there = Object.entries(said).filter(([, value]) => !isAbsent(value));
  return { ...others, messages, ...Object.fromEntries(there) };
}

function onlyInResponses(place: string): Error {
  return fieldError(place, "is known to POST /v1/responses alone; send the request there, or leave this out.");
}

/**
 * Converts a tool to the format of chat completions. Returns it unchanged if it already has this format, or if chat
 * completions have no such kind of tool.
 */
function toolOf(tool: Json): Json {
  const { type, name, description, parameters, input_schema: schema, strict, format, ...others } = tool;
  if (textOf(name) === undefined || isObject(tool["function"]) || isObject(tool["custom"])) return tool;
  if (type === "custom" && schema === undefined) {
    return { ...others, type, custom: { name, description, format: isObject(format) ? grammarOf(format) : undefined } };
  }
  if (type !== undefined && type !== "function" && type !== "custom") return tool;
  return { ...others, type: "function", function: { name, description, parameters: parameters ?? schema, strict } };
}

/** Chat completions have the grammar in a separate object. */
function grammarOf({ type, ...grammar }: Json): Json {
  return type === "grammar" && !isObject(grammar["grammar"]) ? { type, grammar } : { type, ...grammar };
}

function choiceOf(choice: Json): unknown {
  const { type, name, mode, tools } = choice;
  if (type === "auto" || type === "none" || type === "required") return type;
  if (type === "any") return "required";
  if (type === "tool") return { type: "function", function: { name } };
  if (type === "allowed_tools" && tools !== undefined) {
    const allowed = listOf(tools).map((tool) => (isObject(tool) ? toolOf(tool) : tool));
    return { type, allowed_tools: { mode, tools: allowed } };
  }
  return toolOf(choice);
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}
