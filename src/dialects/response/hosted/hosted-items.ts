// Items of a response that tell of tools which were run for it, and what a model is told in their place.
import { newItemId } from "../../../domain/models/item-id.ts";
import { isObject, type Json, objectsOf, textOf } from "../json.ts";
import type { HostedTool } from "./asked-servers.ts";
import { functionName } from "./offered-tools.ts";

/** How a call ended, as the API has it. */
export type CallError =
  | { readonly type: "mcp_protocol_error"; readonly code: number; readonly message: string }
  | { readonly type: "mcp_tool_execution_error"; readonly content: readonly unknown[] }
  | { readonly type: "http_error"; readonly code: number; readonly message: string };

export interface CallResult {
  /** What the model reads. */
  readonly output: string;
  readonly error: CallError | undefined;
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

/** `call`: as the model made it. */
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

export function approvalItem(label: string, name: string, args: string): Json {
  const type = "mcp_approval_request";
  return { id: newItemId(type), type, server_label: label, name, arguments: args };
}

/** A call that a client has approved, or refused. */
export interface Decided {
  readonly requestId: string;
  readonly label: string;
  readonly name: string;
  readonly arguments: string;
  readonly approve: boolean;
  readonly reason: string | undefined;
}

export interface ReadItems {
  /** What the model is told, the items of servers in the form of calls of functions. */
  readonly items: readonly Json[];
  /** Calls that were asked for and are decided, and come behind all that. */
  readonly decided: readonly Decided[];
  /** What servers had listed before, by label: they are not asked again. */
  readonly lists: ReadonlyMap<string, readonly HostedTool[]>;
}

/** The items of a request, `input` as it stands in its body. */
export function readHostedItems(input: unknown): ReadItems {
  if (typeof input === "string") return { items: [{ role: "user", content: input }], decided: [], lists: new Map() };
  const items: Json[] = [];
  const asked = new Map<string, Json>();
  const decided: Decided[] = [];
  const lists = new Map<string, readonly HostedTool[]>();
  for (const item of objectsOf(input)) {
    const { type, id } = item;
    if (type === "mcp_list_tools") lists.set(String(item["server_label"]), listedIn(item));
    else if (type === "mcp_call") items.push(...callAndOutput(item));
    else if (type === "mcp_approval_request") asked.set(String(id), item);
    else if (type === "mcp_approval_response") {
      const request = asked.get(String(item["approval_request_id"]));
      if (request) decided.push(decisionOf(request, item));
    } else items.push(item);
  }
  return { items, decided, lists };
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

function callAndOutput(item: Json): Json[] {
  const { id, server_label: label, name, arguments: args, output, error } = item;
  const text = textOf(output) ?? (isObject(error) ? JSON.stringify(error) : "");
  return calledFunction({
    ...{ callId: String(id), name: functionName(String(label), String(name)) },
    ...{ arguments: textOf(args) ?? "{}", output: text },
  });
}

/** A call of a function, and what came of it. */
export function calledFunction(call: { callId: string; name: string; arguments: string; output: string }): Json[] {
  const { callId, name, arguments: args, output } = call;
  return [
    { type: "function_call", call_id: callId, name, arguments: args },
    { type: "function_call_output", call_id: callId, output },
  ];
}

function decisionOf(request: Json, response: Json): Decided {
  return {
    requestId: String(request["id"]),
    label: String(request["server_label"]),
    name: String(request["name"]),
    arguments: textOf(request["arguments"]) ?? "{}",
    approve: response["approve"] === true,
    reason: textOf(response["reason"]),
  };
}
