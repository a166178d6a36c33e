// Ends a Responses stream that a quota stopped. The response so far becomes `incomplete`.
import type { StopMark } from "../answer.ts";
import type { ReplyUsage } from "../conversation/reply.ts";
import type { BegunAnswer, StreamObserver } from "../translation/passed-stream.ts";
import { isObject, type Json, numberOf, textOf } from "./json.ts";
import { usageToWire } from "./response-object.ts";

type Open = Record<string, unknown>;

/**
 * For each type of delta, the place of the text: a member of the item, or a member of a part in one of the item's
 * lists.
 */
const ofItem: Readonly<Record<string, string>> = {
  "response.function_call_arguments.delta": "arguments",
  "response.mcp_call_arguments.delta": "arguments",
  "response.custom_tool_call_input.delta": "input",
};
const ofPart: Readonly<Record<string, readonly [list: "content" | "summary", member: string]>> = {
  "response.output_text.delta": ["content", "text"],
  "response.refusal.delta": ["content", "refusal"],
  "response.reasoning_text.delta": ["content", "text"],
  "response.reasoning_summary_text.delta": ["summary", "text"],
};
/** Maximum number of characters that are collected, to be repeated at the end of an answer. */
const maxCharacters = 8 * 1024 * 1024;

export class ObservedResponse implements StreamObserver {
  /** Items by their index in the output of the response. */
  readonly #items: Open[] = [];
  readonly #done = new Set<number>();
  #characters = 0;

  see(event: Json): void {
    const index = numberOf(event["output_index"]);
    const type = textOf(event["type"]) ?? "";
    // Indices from the server may be wrong, but the client's items must have consecutive indices.
    if (index === undefined || index < 0 || index > this.#items.length) return;
    if (type === "response.output_item.added" || type === "response.output_item.done") {
      if (isObject(event["item"])) this.#items[index] = structuredClone(event["item"]) as Open;
      if (type.endsWith("done")) this.#done.add(index);
      return;
    }
    const item = this.#items[index];
    if (item && !this.#done.has(index)) this.#add(item, type, event);
  }

  #add(item: Open, type: string, event: Json): void {
    const { delta, part } = event;
    if (isObject(part)) {
      const list = type.startsWith("response.reasoning_summary_part") ? "summary" : "content";
      const parts = listIn(item, list);
      const at = numberOf(event[`${list}_index`]) ?? parts.length;
      if (at <= parts.length) parts[at] = { ...part };
      return;
    }
    if (typeof delta !== "string" || this.#characters + delta.length > maxCharacters) return;
    this.#characters += delta.length;
    const member = ofItem[type];
    if (member) item[member] = `${textOf(item[member]) ?? ""}${delta}`;
    const [list, ofText] = ofPart[type] ?? [];
    if (!list || !ofText) return;
    const open = listIn(item, list)[numberOf(event[`${list}_index`]) ?? 0];
    if (isObject(open)) (open as Open)[ofText] = `${textOf(open[ofText]) ?? ""}${delta}`;
  }

  stopped({ answer, events: first }: BegunAnswer, usage: ReplyUsage, mark: StopMark): string {
    let number = first;
    let text = "";
    const send = (event: Json) => {
      text += `event: ${event["type"]}\ndata: ${JSON.stringify({ ...event, sequence_number: number++ })}\n\n`;
    };
    for (const [index, item] of this.#items.entries()) if (!this.#done.has(index)) this.#end(item, index, send);
    const state = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
    const incomplete = { ...answer, ...state, output: this.#items, usage: usageToWire(usage), headrace: mark };
    send({ type: "response.incomplete", response: incomplete });
    return text;
  }

  /**
   * Ends an open item. Clients act on finished calls. A call that was cut off therefore appears only in the final
   * response.
   */
  #end(item: Open, index: number, send: (event: Json) => void): void {
    if ("status" in item) item["status"] = "incomplete";
    if (item["type"] !== "message") return;
    const parts = listIn(item, "content");
    const last = parts.at(-1);
    if (isObject(last)) {
      const at = { item_id: item["id"], output_index: index, content_index: parts.length - 1 };
      if (last["type"] === "output_text") {
        send({ type: "response.output_text.done", ...at, text: last["text"], logprobs: last["logprobs"] ?? [] });
      } else if (last["type"] === "refusal") send({ type: "response.refusal.done", ...at, refusal: last["refusal"] });
      send({ type: "response.content_part.done", ...at, part: last });
    }
    send({ type: "response.output_item.done", output_index: index, item });
  }
}

function listIn(item: Open, name: "content" | "summary"): unknown[] {
  const list = item[name];
  if (Array.isArray(list)) return list;
  const made: unknown[] = [];
  item[name] = made;
  return made;
}
