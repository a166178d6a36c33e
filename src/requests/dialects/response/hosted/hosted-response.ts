// Joins several model turns into one response with one output and one stream of events. Between these turns, the
// gateway runs MCP tools.
import { isObject, type Json, numberOf, objectsOf, textOf } from "../json.ts";
import { toolToWire } from "../response-object.ts";
import { approvalItem, type CallResult, callItem, endedCall, notCalled } from "./hosted-items.ts";
import type { OfferedTool, OfferedTools } from "./offered-tools.ts";

export interface HostedResponseOptions {
  readonly offered: OfferedTools;
  /** The body of the client's request. */
  readonly request: Json;
  /** Members that the gateway sets, such as `store` and `previous_response_id`. */
  readonly members: Json;
  /** The response object that is used if no model turn begins. The final response always has the id of this object. */
  readonly begun: Json;
}

/** A call of an MCP tool, as the model wrote it. */
export interface HostedCall {
  readonly callId: string;
  /** Name of the function that stands for the tool in requests to the model. */
  readonly functionName: string;
  readonly arguments: string;
  readonly offered: OfferedTool;
  /** The output item of this call, and the index of the item in the output. */
  readonly item: Json;
  readonly index: number;
}

const beginnings = new Set(["response.created", "response.in_progress", "response.queued"]);
const ends = new Set(["response.completed", "response.incomplete", "response.failed"]);
const added = "response.output_item.added";
const done = "response.output_item.done";
/** Types of calls that only the client can make. */
const clientCalls = new Set<unknown>(
  ["function", "custom_tool", "local_shell", "shell", "apply_patch", "computer", "tool_search"].map(
    (name) => `${name}_call`,
  ),
);
const sealed = "reasoning.encrypted_content";
const inProgress = { status: "in_progress" };
const neverCalled = notCalled("The response ended before it was called.");

export class HostedResponse {
  readonly #offered: OfferedTools;
  readonly #members: Json;
  readonly #begun: Json;
  readonly #echo: Json;
  /** True if the client gets sealed reasoning. The model gets this reasoning in the next turn in any case. */
  readonly #showsSealed: boolean;
  readonly #output: Json[] = [];
  #sequence = 0;
  /** The response object at the beginning of the first turn. */
  #head: Json | undefined;
  /** Events that come before the output of the model. */
  #first: Json[] = [];
  #usage: Json | undefined;
  #turns = 0;
  /** The final response of the current model turn. */
  #ended: Json | undefined;
  /** For each index in the current turn's output, the index in the whole output. */
  #indexes = new Map<number, number>();
  #hidden = new Set<number>();
  #calls: HostedCall[] = [];
  #waits = false;

  constructor({ offered, request, members, begun }: HostedResponseOptions) {
    this.#offered = offered;
    this.#members = members;
    this.#begun = begun;
    const { tools, tool_choice: choice, max_tool_calls: calls, max_output_tokens: tokens, include } = request;
    this.#echo = {
      ...{ tools: objectsOf(tools).map(toolToWire), tool_choice: choice ?? "auto" },
      ...{ max_tool_calls: calls ?? null, max_output_tokens: tokens ?? null },
    };
    this.#showsSealed = Array.isArray(include) && include.includes(sealed);
  }

  /** True if the current model turn completed. */
  get isCompleted(): boolean {
    return this.#ended?.["status"] === "completed";
  }

  /** The output of the model in the current turn. */
  get turnOutput(): unknown {
    return this.#ended?.["output"];
  }

  /** True if the model has reported the end of the current turn. */
  get hasEnded(): boolean {
    return this.#ended !== undefined;
  }

  /** Number of output tokens of all turns so far. */
  get outputTokens(): number {
    return numberOf(this.#usage?.["output_tokens"]) ?? 0;
  }

  get calls(): readonly HostedCall[] {
    return this.#calls;
  }

  /** True if the client must act before the next turn: it must approve calls or run its own functions. */
  get waitsForClient(): boolean {
    return this.#waits;
  }

  /** Adds an item with a list of tools. */
  addList(item: Json): void {
    const index = this.#add(item);
    const { tools: _, ...listing } = item;
    this.#first.push(
      { type: added, output_index: index, item: { ...listing, tools: [] } },
      ...["in_progress", "completed"].map((state) => ({
        ...{ type: `response.mcp_list_tools.${state}`, output_index: index, item_id: item["id"] },
      })),
      { type: done, output_index: index, item },
    );
  }

  /** Adds an approved call and its result to the output. */
  addApproved(item: Json, result: CallResult): void {
    const index = this.#add(item);
    this.#first.push(...callBegin(item, index), ...this.#callEnd(item, index, result));
  }

  beginTurn(): void {
    this.#turns++;
    this.#ended = undefined;
    this.#indexes = new Map();
    this.#hidden = new Set();
    this.#calls = [];
    this.#waits = false;
  }

  /** Takes an event of the current turn, and returns the text that the client gets for it. */
  take(event: Json): string {
    const type = textOf(event["type"]) ?? "";
    if (beginnings.has(type)) return this.#takeBegin(event);
    if (ends.has(type)) {
      this.#takeEnd(event["response"]);
      return "";
    }
    // If the client has seen the beginning of the response, an error makes the whole response fail.
    if (type === "error" && this.#head) {
      this.fail(textOf(event["code"]) ?? "server_error", textOf(event["message"]) ?? "The model's answer broke off.");
      return "";
    }
    const sentIndex = numberOf(event["output_index"]);
    const before = this.#takeFirst();
    if (sentIndex === undefined) return before + this.#eventText(event);
    return before + this.#takeOfItem(event, type, sentIndex);
  }

  /** Takes a whole answer in the same way as its events in a stream. */
  takeWhole(response: Json): void {
    const { output, ...rest } = response;
    this.take({ type: "response.created", response: { ...rest, ...inProgress, output: [] } });
    for (const [sentIndex, item] of (Array.isArray(output) ? output : []).entries()) {
      this.take({ type: added, output_index: sentIndex, item });
      this.take({ type: done, output_index: sentIndex, item });
    }
    this.#takeEnd(response);
  }

  /** Ends a call of the current turn, and returns its events. */
  endCall({ item, index }: HostedCall, result: CallResult): string {
    return this.#callEnd(item, index, result)
      .map((event) => this.#eventText(event))
      .join("");
  }

  /** Returns the whole response. May be called only after the response has ended. */
  get whole(): Json {
    // If an item never completed, its entry is empty.
    const output = this.#output.filter(({ type }) => type !== undefined);
    return { ...this.#ended, ...this.#own(), output, usage: this.#usage ?? null };
  }

  /** Ends the response early. The output so far stays. */
  stop(reason: string): void {
    this.#ended = { ...this.#ended, status: "incomplete", incomplete_details: { reason } };
  }

  /** Marks the response as failed. The next event is the end of the response. */
  fail(code: string, message: string): void {
    this.#ended = { ...(this.#head ?? this.#begun), status: "failed", error: { code, message } };
  }

  /** Returns the last events. */
  end(): string {
    const response = { ...this.#begun, ...inProgress };
    const begin = this.#head ? "" : this.#takeBegin({ type: "response.created", response });
    const open = this.#calls.filter(({ item, index }) => this.#output[index] === item);
    const before = begin + this.#takeFirst() + open.map((call) => this.endCall(call, neverCalled)).join("");
    const { whole } = this;
    return before + this.#eventText({ type: `response.${String(whole["status"])}`, response: whole });
  }

  #takeBegin(event: Json): string {
    // The beginning is sent only for the first turn, because all turns belong to the same response.
    if (this.#turns > 1) return "";
    const { response } = event;
    if (isObject(response)) this.#head ??= response;
    return this.#eventText({
      ...event,
      response: { ...(isObject(response) ? response : {}), ...this.#own(), output: [] },
    });
  }

  #takeEnd(response: unknown): void {
    if (!isObject(response)) return;
    this.#head ??= response;
    this.#ended = response;
    this.#usage = summed(this.#usage, response["usage"]);
  }

  #takeFirst(): string {
    const first = this.#first;
    this.#first = [];
    return first.map((event) => this.#eventText(event)).join("");
  }

  #takeOfItem(event: Json, type: string, sentIndex: number): string {
    const item = isObject(event["item"]) ? event["item"] : undefined;
    const index = this.#indexOf(sentIndex);
    const offered = item?.["type"] === "function_call" ? this.#offered.find(item["name"]) : undefined;
    if (offered && type === added) this.#hidden.add(sentIndex);
    if (this.#hidden.has(sentIndex)) return item && offered && type === done ? this.#asked(item, offered, index) : "";
    const shown = item && this.#shown(item);
    if (shown && type === done) {
      this.#output[index] = shown;
      if (clientCalls.has(item["type"])) this.#waits = true;
    }
    return this.#eventText({ ...event, output_index: index, ...(shown && { item: shown }) });
  }

  #indexOf(sentIndex: number): number {
    const known = this.#indexes.get(sentIndex);
    if (known !== undefined) return known;
    const index = this.#add({});
    this.#indexes.set(sentIndex, index);
    return index;
  }

  /** Handles a tool call that the model requests. */
  #asked(item: Json, offered: OfferedTool, index: number): string {
    const { label } = offered.server;
    const { name } = offered.tool;
    const args = textOf(item["arguments"]) || "{}";
    if (offered.needsApproval) {
      this.#waits = true;
      const request = approvalItem(label, name, args);
      this.#output[index] = request;
      return [added, done].map((type) => this.#eventText({ type, output_index: index, item: request })).join("");
    }
    const call = callItem(label, name, { arguments: args, approvedBy: null });
    this.#output[index] = call;
    const callId = textOf(item["call_id"]) ?? String(call["id"]);
    this.#calls.push({ callId, functionName: String(item["name"]), arguments: args, offered, item: call, index });
    return callBegin(call, index)
      .map((event) => this.#eventText(event))
      .join("");
  }

  #callEnd(item: Json, index: number, result: CallResult): Json[] {
    const ended = endedCall(item, result);
    this.#output[index] = ended;
    const type = `response.mcp_call.${result.error ? "failed" : "completed"}`;
    return [
      { type, output_index: index, item_id: item["id"] },
      { type: done, output_index: index, item: ended },
    ];
  }

  #add(item: Json): number {
    this.#output.push(item);
    return this.#output.length - 1;
  }

  #shown(item: Json): Json {
    if (this.#showsSealed || item["type"] !== "reasoning") return item;
    const { encrypted_content: _, ...rest } = item;
    return rest;
  }

  /** Returns the members that are the same for all turns, such as the id of the response. */
  #own(): Json {
    const { created_at: createdAt, model } = this.#head ?? {};
    // The id must be the gateway's own. A server of the Responses API has its own ids, which may be the same as ids of
    // other servers.
    const { id } = this.#begun;
    return { ...this.#echo, ...this.#members, id, created_at: createdAt, model };
  }

  #eventText(event: Json): string {
    const numbered = { ...event, sequence_number: this.#sequence++ };
    return `event: ${String(event["type"])}\ndata: ${JSON.stringify(numbered)}\n\n`;
  }
}

function callBegin(item: Json, index: number): Json[] {
  const at = { output_index: index, item_id: item["id"] };
  const { arguments: args } = item;
  return [
    { type: added, output_index: index, item: { ...item, arguments: "" } },
    { type: "response.mcp_call.in_progress", ...at },
    { type: "response.mcp_call_arguments.delta", ...at, delta: args },
    { type: "response.mcp_call_arguments.done", ...at, arguments: args },
  ];
}

/** Adds up the usage figures of several turns, member by member. */
function summed(sum: Json | undefined, more: unknown): Json | undefined {
  if (!isObject(more)) return sum;
  const all: Record<string, unknown> = { ...sum };
  for (const [name, value] of Object.entries(more)) {
    const before = all[name];
    if (typeof value === "number") all[name] = value + (typeof before === "number" ? before : 0);
    else all[name] = isObject(value) ? summed(isObject(before) ? before : undefined, value) : value;
  }
  return all;
}
