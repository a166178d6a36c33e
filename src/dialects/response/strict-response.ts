// Makes the events of a server's own response strict: what the server left out is inserted, what it repeats is dropped.
import type { StreamRepair } from "../translation/passed-stream.ts";
import type { RepairHead } from "../translation/repair-head.ts";
import { isObject, type Json, numberOf, objectsOf, textOf } from "./json.ts";
import { statusOf } from "./reply-reader.ts";
import { isWholeUsage, strictOutput, strictUsage, withRequired } from "./strict-members.ts";

interface ResponseHead {
  readonly id: string;
  readonly model: string;
  readonly created: number;
}

interface OpenPart {
  hasText: boolean;
  isTextDone: boolean;
  isDone: boolean;
}

interface OpenItem {
  readonly id: string | undefined;
  readonly parts: (OpenPart | undefined)[];
  hasArguments: boolean;
  areArgumentsDone: boolean;
  isDone: boolean;
}

/** No answer has as many items, and no item as many parts: a server may err or lie. */
const maxPlaces = 4_096;
/** The text of a part, by its type, and the kind of its events. */
const textMembers: Readonly<Record<string, readonly [member: string, event: string]>> = {
  output_text: ["text", "response.output_text"],
  refusal: ["refusal", "response.refusal"],
};
/** Events of a message or a thought, whose item they tell as well. */
const begins = /^response\.(?:content_part|output_text|refusal|reasoning)/;
const partTypes: Readonly<Record<string, Json>> = {
  "response.output_text.delta": { type: "output_text", text: "", annotations: [], logprobs: [] },
  "response.refusal.delta": { type: "refusal", refusal: "" },
};

const ends: ReadonlySet<unknown> = new Set(["response.completed", "response.incomplete", "response.failed"]);

export class StrictResponse implements StreamRepair {
  shift = 0;
  readonly #head: ResponseHead;
  /** The items that came whole, by their places, for servers that leave them out of the whole response. */
  readonly #wholeItems = new Map<number, Json>();
  /** The id of a response that the server did not begin itself. */
  #ownId: string | undefined;
  readonly #items: (OpenItem | undefined)[] = [];
  #begun = false;
  #isInProgress = false;
  /** The events that are inserted before the one at hand, whose number the first of them takes. */
  #inserted = "";
  #number: number | undefined;

  constructor(head: ResponseHead) {
    this.#head = head;
  }

  /** Returns the event with what clients need of its item or its response: the same object where nothing is missing. */
  strict(event: Json): Json {
    const { type, item, response, output_index: index } = event;
    if (type === "response.output_item.added" || type === "response.output_item.done") {
      const place = numberOf(index);
      const isWhole = type.endsWith("done") && !hasToldArguments(place === undefined ? undefined : this.#items[place]);
      const own = isObject(item) ? strictItem(item, isWhole) : item;
      if (type.endsWith("done") && isObject(own)) this.#keep(own, place);
      return own === item ? event : { ...event, item: own };
    }
    if (!isObject(response)) return event;
    const own = this.#strictResponse(response, type);
    return own === response ? event : { ...event, response: own };
  }

  #keep(item: Json, index = this.#wholeItems.size): void {
    const { size } = this.#wholeItems;
    if (size >= maxPlaces) return;
    const known = this.#wholeItems.get(index);
    // The server may give all items the same place.
    this.#wholeItems.set(known && known["id"] !== item["id"] ? size : index, item);
  }

  #strictResponse(response: Json, event: unknown): Json {
    const id = this.#ownId ?? response["id"];
    const isEnd = ends.has(event);
    const told = response["status"];
    const status = isEnd ? statusOf(response, event) : told;
    const items = strictItems(response["output"], isEnd && !this.#items.some(hasToldArguments));
    const known = isEnd && items.length === 0 && this.#wholeItems.size > 0;
    const output = known ? [...this.#wholeItems].sort(([one], [other]) => one - other).map(([, item]) => item) : items;
    const isStrict = id === response["id"] && status === told && output === response["output"];
    return isStrict ? response : { ...response, id, status, output };
  }

  before(event: Json): string | undefined {
    this.#inserted = "";
    this.#number = numberOf(event["sequence_number"]);
    return this.#admits(String(event["type"]), event) ? this.#inserted : undefined;
  }

  #admits(type: string, event: Json): boolean {
    if (type === "response.created") {
      if (this.#begun) return false;
      this.#begun = true;
      return true;
    }
    if (!type.startsWith("response.")) return true;
    if (!this.#begun) this.#begin(event["response"]);
    if (type === "response.in_progress") {
      if (this.#isInProgress) return false;
      this.#isInProgress = true;
      return true;
    }
    const { response } = event;
    if (type === "response.completed" || type === "response.incomplete") {
      if (isObject(response)) this.#finishItems(objectsOf(response["output"]));
      return true;
    }
    const index = numberOf(event["output_index"]);
    if (index === undefined || index < 0 || index > maxPlaces) return true;
    return this.#admitsOfItem(type, index, event);
  }

  #admitsOfItem(type: string, index: number, event: Json): boolean {
    const known = this.#items[index];
    const item = isObject(event["item"]) ? event["item"] : undefined;
    // Some servers give all items the same place.
    const isOther = known !== undefined && known.id !== textOf(item?.["id"] ?? event["item_id"]);
    if (type === "response.output_item.added") {
      if (known && !isOther) return false;
      this.#add(index, item);
      return true;
    }
    if (known?.isDone) return isOther || type.endsWith(".delta");
    if (type === "response.output_item.done") {
      if (item) this.#finishParts(item, index);
      const open = this.#items[index];
      if (open) open.isDone = true;
      return true;
    }
    if (!known && type.startsWith("response.function_call_arguments.")) return false;
    const open = known ?? (begins.test(type) ? this.#insertItem(type, index, event) : undefined);
    if (!open) return true;
    if (type === "response.function_call_arguments.delta") open.hasArguments = true;
    else if (type === "response.function_call_arguments.done") {
      if (open.areArgumentsDone) return false;
      open.areArgumentsDone = true;
      open.hasArguments ||= Boolean(textOf(event["arguments"]));
    }
    const place = numberOf(event["content_index"]);
    return place === undefined || place < 0 || place > maxPlaces || this.#admitsOfPart(type, open, place, event);
  }

  #admitsOfPart(type: string, open: OpenItem, place: number, event: Json): boolean {
    const known = open.parts[place];
    if (type === "response.content_part.added") {
      if (known) return false;
      open.parts[place] = { hasText: false, isTextDone: false, isDone: false };
      return true;
    }
    const isDelta = type.endsWith(".delta");
    if (!known && isDelta && partTypes[type]) this.#insertPart(open, place, event, partTypes[type]);
    const part = open.parts[place];
    if (!part) return true;
    if (isDelta) part.hasText = true;
    if (type === "response.content_part.done") {
      if (part.isDone) return false;
      if (isObject(event["part"])) this.#finishText(part, event["part"], event);
      part.isDone = true;
    } else if (type.endsWith(".done")) {
      if (part.isTextDone) return false;
      part.isTextDone = true;
    }
    return true;
  }

  #begin(response: unknown): void {
    this.#begun = true;
    const { id, model, created } = this.#head;
    if (!isObject(response)) this.#ownId = id;
    const head = isObject(response) ? response : { id, object: "response", created_at: created, model, error: null };
    this.#insert({ type: "response.created", response: { ...head, status: "in_progress", output: [] } });
  }

  #add(index: number, item: Json | undefined): OpenItem {
    const open = { id: textOf(item?.["id"]), parts: [], hasArguments: false, areArgumentsDone: false, isDone: false };
    this.#items[index] = open;
    return open;
  }

  /** An item that begins with a piece of it is a message, or a thought. */
  #insertItem(type: string, index: number, { item_id: id }: Json): OpenItem {
    const item = type.startsWith("response.reasoning")
      ? { id, type: "reasoning", summary: [] }
      : { id, type: "message", status: "in_progress", role: "assistant", content: [] };
    this.#insert({ type: "response.output_item.added", output_index: index, item });
    return this.#add(index, item);
  }

  #insertPart(open: OpenItem, content_index: number, { item_id, output_index }: Json, part: Json): void {
    open.parts[content_index] = { hasText: false, isTextDone: false, isDone: false };
    this.#insert({ type: "response.content_part.added", item_id, output_index, content_index, part });
  }

  /** Items of the whole response that did not end; all of them, where none was told before. */
  #finishItems(items: readonly Json[]): void {
    const areUntold = this.#items.length === 0;
    for (const [index, item] of items.slice(0, maxPlaces).entries()) {
      const known = this.#items[index];
      if (areUntold || (known && !known.isDone && known.id === textOf(item["id"]))) this.#finish(item, index);
    }
  }

  #finish(item: Json, index: number): void {
    this.#finishParts(item, index);
    const open = this.#items[index];
    if (open) open.isDone = true;
    this.#insert({ type: "response.output_item.done", output_index: index, item });
  }

  #finishParts(item: Json, index: number): void {
    let open = this.#items[index];
    const { id: item_id, type } = item;
    if (!open) {
      const empty = type === "message" ? { content: [] } : type === "function_call" ? { arguments: "" } : {};
      this.#insert({ type: "response.output_item.added", output_index: index, item: { ...item, ...empty } });
      open = this.#add(index, item);
    }
    const of = { item_id, output_index: index };
    if (type === "function_call" && !open.areArgumentsDone) {
      const all = textOf(item["arguments"]) ?? "";
      const whole = { type: "response.function_call_arguments.delta", ...of, delta: all };
      if (!open.hasArguments && all !== "") this.#insert(whole);
      this.#insert({ type: "response.function_call_arguments.done", ...of, arguments: all });
      open.areArgumentsDone = true;
    }
    if (type !== "message") return;
    for (const [content_index, part] of objectsOf(item["content"]).entries()) {
      const [member] = textMembers[String(part["type"])] ?? [];
      if (!member) continue;
      if (!open.parts[content_index]) this.#insertPart(open, content_index, of, { ...part, [member]: "" });
      const state = open.parts[content_index];
      if (!state || state.isDone) continue;
      this.#finishText(state, part, { ...of, content_index });
      state.isDone = true;
      this.#insert({ type: "response.content_part.done", ...of, content_index, part });
    }
  }

  #finishText(state: OpenPart, part: Json, { item_id, output_index, content_index }: Json): void {
    const [member, event] = textMembers[String(part["type"])] ?? [];
    if (state.isTextDone || !member) return;
    state.isTextDone = true;
    const of = { item_id, output_index, content_index };
    const text = textOf(part[member]) ?? "";
    const logprobs = member === "text" ? { logprobs: part["logprobs"] ?? [] } : {};
    if (!state.hasText && text !== "") this.#insert({ type: `${event}.delta`, ...of, delta: text, ...logprobs });
    this.#insert({ type: `${event}.done`, ...of, [member]: text, ...logprobs });
  }

  #insert(event: Json): void {
    const number = this.#number === undefined ? {} : { sequence_number: this.#number + this.shift++ };
    this.#inserted += `event: ${String(event["type"])}\ndata: ${JSON.stringify({ ...event, ...number })}\n\n`;
  }
}

/** Returns the output with the members that clients need: the same list where none is missing. */
function strictItems(output: unknown, areWhole: boolean): readonly Json[] {
  const items = objectsOf(output);
  const strict = items.map((item) => strictItem(item, areWhole));
  const isStrict =
    Array.isArray(output) && items.length === output.length && strict.every((item, at) => item === items[at]);
  return isStrict ? (output as readonly Json[]) : strict;
}

function hasToldArguments(item: OpenItem | undefined): boolean {
  return item?.hasArguments === true;
}

/**
 * Returns the item with a `call_id`, arguments as text and content as parts; the same object where they are so. `isWhole`: a call
 * whose arguments are empty takes none.
 */
function strictItem(item: Json, isWhole: boolean): Json {
  const { type, id, call_id: callId, arguments: told, content } = item;
  if (type === "function_call") {
    const none = isWhole && item["status"] !== "incomplete" ? textOf(told) || "{}" : (textOf(told) ?? "");
    const values = isObject(told) ? JSON.stringify(told) : none;
    const own = textOf(callId) || textOf(id) || callId;
    return values === told && own === callId ? item : { ...item, call_id: own, arguments: values };
  }
  if (type !== "message" || Array.isArray(content)) return item;
  const text = textOf(content);
  return { ...item, content: text ? [{ type: "output_text", text, annotations: [] }] : [] };
}

/** Returns a whole response with the members that clients need: the same object where none is missing. */
export function strictResponse(response: Json, head: RepairHead): Json {
  const status = statusOf(response, undefined);
  const own = withRequired(response, status, head);
  const output = strictOutput(own["output"], status, (_, index) => ({ answerId: head.id, index, isWhole: true }));
  const usage = isWholeUsage(own["usage"]) ? own["usage"] : strictUsage(own["usage"], head.usage());
  return output === own["output"] && usage === own["usage"] ? own : { ...own, output, usage };
}
