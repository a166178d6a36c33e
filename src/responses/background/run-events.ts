// The events of a response in the background, numbered anew, and the response as they leave it.

import type { EventBatch, ResponseStatus } from "../../domain/models/stored-response.ts";
import { isObject, type Json, objectsOf } from "../../requests/dialects/response/json.ts";

/** With what an event that ends a response leaves it; a server that speaks Responses may leave it out. */
const ends: ReadonlyMap<unknown, ResponseStatus> = new Map([
  ["response.completed", "completed"],
  ["response.incomplete", "incomplete"],
  ["response.failed", "failed"],
]);

/**
 * The first two events say that it waits, before any model is asked: what the model's stream begins with is told in their
 * place, so its events get numbers of their own.
 */
export class RunEvents {
  /** Members that each telling of the response has, whoever made it. */
  readonly #own: Json;
  #response: Json;
  #status: ResponseStatus = "queued";
  /** The items of the answer that are done, and calls of tools that are under way, by their place. */
  readonly #items = new Map<number, Json>();
  /** JSON of those that are not in the store yet; `#first` is the number of the first of them. */
  #events: string[] = [];
  #first = 0;
  #size = 0;
  /** Characters of the items that are done. */
  #itemsSize = 0;
  #isOver = false;

  /** `response`: as it is before a model was asked. */
  constructor(response: Json) {
    const { id, created_at } = response;
    this.#own = { id, created_at, background: true };
    this.#response = { ...response, ...this.#own, status: "queued" };
    this.#tell("response.created", { response: this.#response });
    this.#tell("response.queued", { response: this.#response });
  }

  /** The response as it stands, with the items that are done. */
  get response(): Json {
    return this.#response;
  }

  /** About how many characters it has in items that are done. */
  get responseSize(): number {
    return this.#itemsSize;
  }

  get status(): ResponseStatus {
    return this.#status;
  }

  /** Characters of the events that are not in the store yet. */
  get size(): number {
    return this.#size;
  }

  /** Those that are not in the store yet. */
  get unstored(): EventBatch {
    return { first: this.#first, events: this.#events };
  }

  /** Whether an event has told the end. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Takes the data of an event of the model's stream. Throws where it is no JSON. */
  take(data: string): void {
    if (this.#isOver) return;
    const event: unknown = JSON.parse(data);
    if (!isObject(event)) return;
    const { type, sequence_number: _number, ...members } = event;
    if (type === "response.created" || typeof type !== "string") return;
    // One before any response: as a response that failed, which has a number behind the others, and can be read later.
    if (type === "error") this.fail(String(members["code"] ?? "server_error"), String(members["message"] ?? ""));
    else this.#take(type, members);
  }

  #take(type: string, members: Json): void {
    const { response, item, output_index: index } = members;
    if (isObject(response)) {
      this.#status = ends.get(type) ?? "in_progress";
      this.#response = { status: this.#status, ...response, ...this.#own };
      this.#isOver = ends.has(type);
      this.#tell(type, { ...members, response: this.#response });
      return;
    }
    const size = this.#tell(type, members);
    const kept = typeof index === "number" && this.#keptOf(type, item, members, index);
    if (!kept) return;
    this.#items.set(index, kept);
    this.#response = { ...this.#response, output: this.#output() };
    this.#itemsSize += size;
  }

  /** An item that is done; a call of a tool of a server from its begin on, as it may have been made, however all of this ends. */
  #keptOf(type: string, item: unknown, members: Json, index: number): Json | undefined {
    if (isObject(item) && (type === "response.output_item.done" || item["type"] === "mcp_call")) return item;
    const open = type === "response.mcp_call_arguments.done" ? this.#items.get(index) : undefined;
    return open && { ...open, arguments: members["arguments"] };
  }

  fail(code: string, message: string): void {
    this.#end("response.failed", "failed", { error: { code, message } });
  }

  /** A stream that is read tells it as an end that is none of the model's: there is no event for it alone. */
  cancel(): void {
    this.#end("response.incomplete", "cancelled", { incomplete_details: { reason: "cancelled" } });
  }

  /** The first `count` events are in the store; gives how many characters they had. */
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
    this.#tell(type, { response: this.#response });
  }

  #output(): readonly Json[] {
    return objectsOf([...this.#items].sort(([a], [b]) => a - b).map(([, item]) => item));
  }

  /** Gives how many characters it has. */
  #tell(type: string, members: Json): number {
    const event = JSON.stringify({ type, sequence_number: this.#first + this.#events.length, ...members });
    this.#events.push(event);
    this.#size += event.length;
    return event.length;
  }
}

/** Calls that were under way have not ended. */
function stopped(items: readonly Json[]): readonly Json[] {
  return items.map((item) => (item["status"] === "in_progress" ? { ...item, status: "incomplete" } : item));
}

/** An event of a response as a stream has it; its data begin with its type. */
export function asStreamed(event: string): string {
  const type = /^\{"type":"([\w.]{1,128})"/.exec(event)?.[1] ?? "message";
  return `event: ${type}\ndata: ${event}\n\n`;
}

/** A last event of a response whose process is gone, and the response as that leaves it. */
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
