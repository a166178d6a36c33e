// Tools of MCP servers in a chat: their definitions, the calls in a stream, and their results.
import { asFailure } from "../../api/client.ts";
import { callTool, isObject, type JsonObject, type Listed } from "../../api/tools.ts";
import type { ToolCall } from "./exchange.ts";

/** The maximum number of tools of one chat: models choose badly among more. */
export const maxTools = 32;
/** The number of requests after which a model gets no further results, because it may call tools without end. */
export const maxRounds = 8;

/** Returns the tools as members of a chat request. */
export function toolParameters(tools: readonly Listed[]): object {
  if (tools.length === 0) return {};
  const functions = tools.map(({ name, description, inputSchema }) => ({
    type: "function",
    function: { name, ...(typeof description === "string" ? { description } : {}), parameters: inputSchema ?? {} },
  }));
  return { tools: functions };
}

/** Adds a piece of a streamed call, which names its call by an index. */
export function withPiece(calls: readonly ToolCall[], piece: JsonObject): ToolCall[] {
  const index = typeof piece["index"] === "number" ? piece["index"] : calls.length;
  const part = isObject(piece["function"]) ? piece["function"] : {};
  const before = calls[index] ?? { id: "", name: "", arguments: "", result: null };
  const call = {
    ...before,
    id: before.id + textOf(piece["id"]),
    name: before.name + textOf(part["name"]),
    arguments: before.arguments + textOf(part["arguments"]),
  };
  return index < calls.length ? calls.with(index, call) : [...calls, call];
}

/** Calls the tool. A failure becomes the result, because the model can react to the failure. */
export async function resultOf({ name, arguments: written }: ToolCall, signal: AbortSignal): Promise<string> {
  try {
    const given: unknown = JSON.parse(written === "" ? "{}" : written);
    if (!isObject(given)) return "Error: the arguments are not a JSON object.";
    const { content, isError } = await callTool(name, given, signal);
    const text = content.map((part) => (part["type"] === "text" ? textOf(part["text"]) : JSON.stringify(part)));
    return `${isError ? "Error: " : ""}${text.join("\n")}`;
  } catch (error) {
    signal.throwIfAborted();
    return `Error: ${asFailure(error, "The call failed").message}`;
  }
}

/** Returns the messages by which a model gets the results of its calls. */
export function resultMessages(text: string, calls: readonly ToolCall[]): object[] {
  return [
    {
      role: "assistant",
      content: text === "" ? null : text,
      tool_calls: calls.map(({ id, name, arguments: written }) => ({
        ...{ id, type: "function", function: { name, arguments: written } },
      })),
    },
    ...calls.map(({ id, result }) => ({ role: "tool", tool_call_id: id, content: result ?? "" })),
  ];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
