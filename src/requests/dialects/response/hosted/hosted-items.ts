// Reads and writes response items for tools that the gateway ran. For the model, these items become function calls.
import { fieldError } from "../../../../base/errors.ts";
import { shown } from "../../../../base/text/shown.ts";
import { newItemId } from "../../../../domain/models/item-id.ts";
import { isObject, type Json, objectsOf, textOf } from "../json.ts";
import type { HostedTool } from "./asked-servers.ts";
import { functionName } from "./offered-tools.ts";

/** The error code for invalid parameters, from JSON-RPC 2.0, section 5.1. */
const invalidParams = -32_602;

/**
 * Maximum number of approved calls. Each one makes a call and a database row. No model asks for so many calls at once.
 */
const maxApproved = 256;

/** The error of a tool call, in the form that the API has. */
export type CallError =
  | { readonly type: "mcp_protocol_error"; readonly code: number; readonly message: string }
  | { readonly type: "mcp_tool_execution_error"; readonly content: readonly unknown[] }
  | { readonly type: "http_error"; readonly code: number; readonly message: string };

const callErrors = new Set<unknown>(["mcp_protocol_error", "mcp_tool_execution_error", "http_error"]);

export interface CallResult {
  /** The text that the model reads as the result of the call. */
  readonly output: string;
  readonly error: CallError | undefined;
}

/** Returns the result of a call that the gateway did not send to its server. */
export function notCalled(message: string): CallResult {
  return { output: message, error: { type: "mcp_protocol_error", code: invalidParams, message } };
}

export function listItem(label: string, tools: readonly HostedTool[]): Json {
  return {
    ...{ id: newItemId("mcp_list_tools"), type: "mcp_list_tools", server_label: label },
    tools: tools.map(({ name, description, inputSchema, isReadOnly }) => ({
      ...{ name, description: description ?? null, input_schema: inputSchema },
      annotations: { read_only: isReadOnly },
    })),
    error: null,
  };
}

/**
 * Returns the item of a call that has begun. `call` contains the model's arguments and the id of the approval request.
 */
export function callItem(label: string, name: string, call: { arguments: string; approvedBy: string | null }): Json {
  return {
    ...{ id: newItemId("mcp_call"), type: "mcp_call", status: "in_progress", server_label: label, name },
    ...{ arguments: call.arguments, output: null, error: null, approval_request_id: call.approvedBy },
  };
}

export function endedCall(item: Json, { output, error }: CallResult): Json {
  return error
    ? { ...item, status: "failed", output: null, error }
    : { ...item, status: "completed", output, error: null };
}

/**
 * Returns the result of a call that another response has already made. If the call has a stored item, the result comes
 * from it. Clients that lost an answer send the approval again.
 */
export function takenCall(responseId: string, item: Json | undefined): CallResult {
  const { status, output, error } = item ?? {};
  if (status === "completed") return { output: textOf(output) ?? "", error: undefined };
  if (status === "failed" && isCallError(error)) return { output: JSON.stringify(error), error };
  return notCalled(
    `This call was approved before, and the response ${responseId} began to make it. Whether it was made, and what came of it, is not known here. It is not made again.`,
  );
}

function isCallError(value: unknown): value is CallError {
  return isObject(value) && callErrors.has(value["type"]);
}

export function approvalItem(label: string, name: string, args: string): Json {
  const type = "mcp_approval_request";
  return { id: newItemId(type), type, server_label: label, name, arguments: args };
}

/** A call that the client has approved and that has not been made yet. */
export interface Decided {
  readonly requestId: string;
  readonly label: string;
  readonly name: string;
  readonly arguments: string;
}

export interface ReadItems {
  /** Items for the model. Items of MCP servers have become function calls. */
  readonly items: readonly Json[];
  /** Calls that must be made now. Their results follow the items. */
  readonly decided: readonly Decided[];
  /** Earlier lists of tools, by the label of the server. These servers are not asked for their tools again. */
  readonly lists: ReadonlyMap<string, readonly HostedTool[]>;
}

/**
 * Reads the items of a request's `input`. Throws `invalid_request` if an approval answers no request, if it contradicts
 * another approval, or if there are too many.
 */
export function readHostedItems(input: unknown): ReadItems {
  if (typeof input === "string") return { items: [{ role: "user", content: input }], decided: [], lists: new Map() };
  const items: Json[] = [];
  const asked = new Map<unknown, Json>();
  const approved = new Map<unknown, boolean>();
  const made = new Set<unknown>();
  const lists = new Map<string, readonly HostedTool[]>();
  for (const item of objectsOf(input)) {
    const { type, id } = item;
    if (type === "mcp_list_tools") {
      if (!isObject(item["error"]) && textOf(item["error"]) === undefined)
        lists.set(String(item["server_label"]), listedIn(item));
    } else if (type === "mcp_call") {
      made.add(item["approval_request_id"]);
      items.push(...callAndOutput(item));
    } else if (type === "mcp_approval_request") asked.set(id, item);
    else if (type === "mcp_approval_response") {
      const { request, isApproved } = decisionOf(item, asked);
      // A client that sends a whole conversation may send the same decision twice.
      if (approved.has(request["id"]) && approved.get(request["id"]) !== isApproved)
        throw fieldError("input", `has two answers to the approval request \`${shown(String(request["id"]))}\`.`);
      if (!isApproved && !approved.has(request["id"])) items.push(...refusedCall(request, item));
      approved.set(request["id"], isApproved);
    } else items.push(item);
  }
  const decided = [...asked.values()].filter(({ id }) => approved.get(id) && !made.has(id)).map(decidedCall);
  if (decided.length > maxApproved)
    throw fieldError(
      "input",
      `must approve at most ${maxApproved} calls that were not made yet (got ${decided.length}).`,
    );
  return { items, decided, lists };
}

/** Returns the approval request that this item answers, and the client's decision. */
function decisionOf(item: Json, asked: ReadonlyMap<unknown, Json>): { request: Json; isApproved: boolean } {
  const { approval_request_id: id, approve } = item;
  const request = typeof id === "string" ? asked.get(id) : undefined;
  if (typeof approve !== "boolean") throw fieldError("input", "has an `mcp_approval_response` without `approve`.");
  if (request) return { request, isApproved: approve };
  const rule = `answers to the approval request \`${shown(String(id))}\`, which is not in this conversation before it.`;
  throw fieldError("input", `${rule} Name the response that asked as \`previous_response_id\`, or send its items.`);
}

function listedIn(item: Json): HostedTool[] {
  return objectsOf(item["tools"]).flatMap((tool) => {
    const name = textOf(tool["name"]);
    const { input_schema: schema, annotations } = tool;
    if (name === undefined || !isObject(schema)) return [];
    const isReadOnly = isObject(annotations) && annotations["read_only"] === true;
    return [{ name, description: textOf(tool["description"]), inputSchema: schema, isReadOnly }];
  });
}

/** The output of a call if its response ended before the call did. */
export const notKnown = "Whether this call was made, and what came of it, is not known.";

/** Converts an MCP call and its output to a function call and its output. */
export function callAndOutput(item: Json): Json[] {
  const { id, server_label: label, name, arguments: args, output, error } = item;
  const text = textOf(output) ?? (isObject(error) ? JSON.stringify(error) : textOf(error)) ?? notKnown;
  return calledFunction({
    ...{ callId: String(id), name: functionName(String(label), String(name)) },
    ...{ arguments: textOf(args) ?? "{}", output: text },
  });
}

/** Returns a function call and its output. */
export function calledFunction(call: { callId: string; name: string; arguments: string; output: string }): Json[] {
  const { callId, name, arguments: args, output } = call;
  return [
    { type: "function_call", call_id: callId, name, arguments: args },
    { type: "function_call_output", call_id: callId, output },
  ];
}

function refusedCall(request: Json, { reason }: Json): Json[] {
  const { requestId: callId, label, name, arguments: args } = decidedCall(request);
  const why = textOf(reason);
  const output = `The user did not allow this call.${why === undefined ? "" : ` ${why}`}`;
  return calledFunction({ callId, name: functionName(label, name), arguments: args, output });
}

function decidedCall(request: Json): Decided {
  return {
    requestId: String(request["id"]),
    label: String(request["server_label"]),
    name: String(request["name"]),
    arguments: textOf(request["arguments"]) ?? "{}",
  };
}
