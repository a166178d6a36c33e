// The renumbered events of a background response, and the response that results from them.

import type { EventBatch, ResponseStatus } from "../../domain/models/stored-response.ts";
import { isObject, type Json, objectsOf } from "../../requests/dialects/response/json.ts";

/** Final status of the response by the type of its last event. Upstreams may leave the status out. */
const ends: ReadonlyMap<unknown, ResponseStatus> = new Map([
  ["response.completed", "completed"],
  ["response.incomplete", "incomplete"],
  ["response.failed", "failed"],
]);

/**
 * Creates two events for the queued response before a model is asked. The model's first event is dropped, so later
 * events get new numbers.
 */
export class RunEvents {
  /** Members that the response has in every event, whatever the upstream sends. */
  readonly #own: Json;
  #response: Json;
  #status: ResponseStatus = "queued";
  /** Finished output items, and tool calls in progress, by output index. */
  readonly #items = new Map<number, Json>();
  /** Unstored events as JSON; `#first` is the number of the first one. */
  #events: string[] = [];
  #first = 0;
  #size = 0;
  /** Characters of the finished items. */
  #itemsSize = 0;
  #isOver = false;

  /** `response` is the queued response, before a model is asked. */
  constructor(response: Json) {
    const { id, created_at } = response;
    this.#own = { id, created_at, background: true };
    this.#response = { ...response, ...this.#own, status: "queued" };
    this.#add("response.created", { response: this.#response });
    this.#add("response.queued", { response: this.#response });
  }

  /** The current response, with its finished items. */
  get response(): Json {
    return this.#response;
  }

  /** Approximate characters of the finished items. */
  get responseSize(): number {
    return this.#itemsSize;
  }

  get status(): ResponseStatus {
    return this.#status;
  }

  /** Characters of the unstored events. */
  get size(): number {
    return this.#size;
  }

  /** The unstored events. */
  get unstored(): EventBatch {
    return { first: this.#first, events: this.#events };
  }

  /** True after the last event. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Takes the data of an event of the model's stream. Throws if the data is not JSON. */
  take(data: string): void {
    if (this.#isOver) return;
    const event: unknown = JSON.parse(data);
    if (!isObject(event)) return;
    const { type, sequence_number: _number, ...members } = event;
    if (type === "response.created" || typeof type !== "string") return;
    // An error before any response becomes a failed response, which has an event number and can be read later.
    if (type === "error") this.fail(String(members["code"] ?? "server_error"), String(members["message"] ?? ""));
    else this.#take(type, members);
  }

  #take(type: string, members: Json): void {
    const { response, item, output_index: index } = members;
    if (isObject(response)) {
      this.#status = ends.get(type) ?? "in_progress";
      this.#response = { status: this.#status, ...response, ...this.#own };
      this.#isOver = ends.has(type);
      this.#add(type, { ...members, response: this.#response });
      return;
    }
    const size = this.#add(type, members);
    const kept = typeof index === "number" && this.#keptOf(type, item, members, index);
    if (!kept) return;
    this.#items.set(index, kept);
    this.#response = { ...this.#response, output: this.#output() };
    this.#itemsSize += size;
  }

  /**
   * Returns a finished item. Tool calls of MCP servers are returned from their beginning, because they may have run
   * even if the response fails.
   */
  #keptOf(type: string, item: unknown, members: Json, index: number): Json | undefined {
    if (isObject(item) && (type === "response.output_item.done" || item["type"] === "mcp_call")) return item;
    const open = type === "response.mcp_call_arguments.done" ? this.#items.get(index) : undefined;
    return open && { ...open, arguments: members["arguments"] };
  }

  fail(code: string, message: string): void {
    this.#end("response.failed", "failed", { error: { code, message } });
  }

  /** Ends the response as cancelled. The protocol has no event for that, so `response.incomplete` is sent. */
  cancel(): void {
    this.#end("response.incomplete", "cancelled", { incomplete_details: { reason: "cancelled" } });
  }

  /** Removes the first `count` events, which are stored now. Returns how many characters they had. */
  stored(count: number): number {
    const gone = this.#events.splice(0, count).reduce((sum, event) => sum + event.length, 0);
    this.#first += count;
    this.#size -= gone;
    return gone;
  }

  #end(type: string, status: ResponseStatus, members: Json): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#status = status;
    this.#response = { ...this.#response, status, ...members, output: stopped(this.#output()) };
    this.#add(type, { response: this.#response });
  }

  #output(): readonly Json[] {
    return objectsOf([...this.#items].sort(([a], [b]) => a - b).map(([, item]) => item));
  }

  /** Adds an event. Returns its number of characters. */
  #add(type: string, members: Json): number {
    const event = JSON.stringify({ type, sequence_number: this.#first + this.#events.length, ...members });
    this.#events.push(event);
    this.#size += event.length;
    return event.length;
  }
}

/** Marks calls in progress as incomplete. */
function stopped(items: readonly Json[]): readonly Json[] {
  return items.map((item) => (item["status"] === "in_progress" ? { ...item, status: "incomplete" } : item));
}

/** Returns an event as a Server-Sent Event. Its JSON begins with its type. */
export function asStreamed(event: string): string {
  const type = /^\{"type":"([\w.]{1,128})"/.exec(event)?.[1] ?? "message";
  return `event: ${type}\ndata: ${event}\n\n`;
}

/** Returns the last event of an abandoned response, and the resulting response. */
export function abandonedEnd(response: Json, number: number): { event: string; response: Json } {
  const failed = {
    ...response,
    output: stopped(objectsOf(response["output"])),
    status: "failed",
    error: {
      code: "server_error",
      message: "The server that worked on this response ended before it was done. Ask for it again.",
    },
  };
  return {
    event: JSON.stringify({ type: "response.failed", sequence_number: number, response: failed }),
    response: failed,
  };
}
