// The items of a response as they grow: each knows its events, and what it is once it is done.

import type { Seal } from "../../domain/seal.ts";
import type { ReasoningProof } from "../conversation/conversation.ts";
import type { ReplyCall } from "../conversation/reply.ts";
import type { Json } from "./json.ts";
import { sealReasoning } from "./sealed-reasoning.ts";

/** Takes the events of an item; `members` are those beside its type and number, as JSON without braces. */
export interface EventSink {
  event(type: string, members: string): void;
}

interface ItemPlace {
  /** The id of the item, and its place in the output. */
  id: string;
  index: number;
}

function at({ id, index }: ItemPlace): string {
  return `"item_id":${JSON.stringify(id)},"output_index":${index}`;
}

abstract class OpenItem {
  protected readonly place: ItemPlace;
  protected readonly events: EventSink;

  constructor(place: ItemPlace, events: EventSink) {
    this.place = place;
    this.events = events;
  }

  /** Its place in the output. */
  get index(): number {
    return this.place.index;
  }

  /** Ends it, as a whole; gives what it became. */
  abstract done(): Json;

  /** What there is of it, where the answer was cut off: without the events that say that it is whole, as clients act upon them. */
  abstract cut(): Json;

  protected added(item: Json): void {
    this.events.event(
      "response.output_item.added",
      `"output_index":${this.place.index},"item":${JSON.stringify(item)}`,
    );
  }

  protected ended(item: Json): Json {
    this.events.event("response.output_item.done", `"output_index":${this.place.index},"item":${JSON.stringify(item)}`);
    return item;
  }
}

type PartKind = "output_text" | "refusal";

export class OpenMessage extends OpenItem {
  readonly #content: Json[] = [];
  #kind: PartKind | undefined;
  #text = "";
  #logprobs: unknown[] = [];
  /** What the events of the part at hand begin with. */
  #at = "";

  constructor(place: ItemPlace, events: EventSink) {
    super(place, events);
    this.added({ id: place.id, type: "message", status: "in_progress", role: "assistant", content: [] });
  }

  text(text: string, logprobs: readonly unknown[] | undefined): void {
    this.#open("output_text");
    this.#text += text;
    const told = logprobs === undefined ? "[]" : JSON.stringify(logprobs);
    if (logprobs) for (const one of logprobs) this.#logprobs.push(one);
    this.events.event("response.output_text.delta", `${this.#at},"delta":${JSON.stringify(text)},"logprobs":${told}`);
  }

  refusal(text: string): void {
    this.#open("refusal");
    this.#text += text;
    this.events.event("response.refusal.delta", `${this.#at},"delta":${JSON.stringify(text)}`);
  }

  /** What comes next is a part of its own. */
  endPart(): void {
    if (this.#kind === undefined) return;
    const text = JSON.stringify(this.#text);
    if (this.#kind === "refusal") this.events.event("response.refusal.done", `${this.#at},"refusal":${text}`);
    else {
      const logprobs = JSON.stringify(this.#logprobs);
      this.events.event("response.output_text.done", `${this.#at},"text":${text},"logprobs":${logprobs}`);
    }
    const part = this.#part(this.#kind, this.#text);
    this.events.event("response.content_part.done", `${this.#at},"part":${JSON.stringify(part)}`);
    this.#content.push(part);
    this.#kind = undefined;
    this.#text = "";
    this.#logprobs = [];
  }

  done(): Json {
    this.endPart();
    return this.ended(this.#item("completed"));
  }

  /** Its text is of use as far as it goes. */
  cut(): Json {
    this.endPart();
    return this.ended(this.#item("incomplete"));
  }

  #item(status: string): Json {
    return { id: this.place.id, type: "message", status, role: "assistant", content: this.#content };
  }

  #open(kind: PartKind): void {
    if (this.#kind === kind) return;
    this.endPart();
    this.#kind = kind;
    this.#at = `${at(this.place)},"content_index":${this.#content.length}`;
    this.events.event("response.content_part.added", `${this.#at},"part":${JSON.stringify(this.#part(kind, ""))}`);
  }

  #part(kind: PartKind, text: string): Json {
    if (kind === "refusal") return { type: "refusal", refusal: text };
    return { type: "output_text", annotations: [], logprobs: this.#logprobs, text };
  }
}

export interface ReasoningOptions {
  /** Whether it is told as a summary, which clients show that ask for one; else as the thoughts themselves. */
  asSummary: boolean;
  /** Whether the client keeps it sealed. */
  isSealed: boolean;
  seal: Seal;
}

export class OpenReasoning extends OpenItem {
  readonly #options: ReasoningOptions;
  readonly #at: string;
  #text = "";
  #proof: ReasoningProof | undefined;

  constructor(place: ItemPlace, events: EventSink, options: ReasoningOptions) {
    super(place, events);
    this.#options = options;
    this.#at = `${at(place)},"${options.asSummary ? "summary" : "content"}_index":0`;
    this.added({ id: place.id, type: "reasoning", summary: [] });
  }

  text(text: string): void {
    if (this.#text === "") this.#begin();
    this.#text += text;
    const type = this.#options.asSummary ? "response.reasoning_summary_text.delta" : "response.reasoning_text.delta";
    this.events.event(type, `${this.#at},"delta":${JSON.stringify(text)}`);
  }

  prove(proof: ReasoningProof): void {
    this.#proof = proof;
  }

  done(): Json {
    const { asSummary, isSealed, seal } = this.#options;
    const parts = this.#text === "" ? [] : [this.#part(this.#text)];
    if (this.#text !== "") this.#end();
    const proof = this.#proof;
    const item: Record<string, unknown> = { id: this.place.id, type: "reasoning", summary: asSummary ? parts : [] };
    if (!asSummary) item["content"] = parts;
    // What a maker wants to see again goes along in any case: without it the conversation could not go on there.
    if (isSealed || proof) item["encrypted_content"] = sealReasoning(seal, { text: this.#text, proof });
    return this.ended(item);
  }

  cut(): Json {
    return this.done();
  }

  #begin(): void {
    const type = this.#options.asSummary ? "response.reasoning_summary_part.added" : "response.content_part.added";
    this.events.event(type, `${this.#at},"part":${JSON.stringify(this.#part(""))}`);
  }

  #end(): void {
    const { asSummary } = this.#options;
    const text = JSON.stringify(this.#text);
    const part = JSON.stringify(this.#part(this.#text));
    this.events.event(
      asSummary ? "response.reasoning_summary_text.done" : "response.reasoning_text.done",
      `${this.#at},"text":${text}`,
    );
    this.events.event(
      asSummary ? "response.reasoning_summary_part.done" : "response.content_part.done",
      `${this.#at},"part":${part}`,
    );
  }

  #part(text: string): Json {
    return { type: this.#options.asSummary ? "summary_text" : "reasoning_text", text };
  }
}

export class OpenCall extends OpenItem {
  readonly #call: ReplyCall;
  readonly #at: string;
  #input = "";

  constructor(place: ItemPlace, events: EventSink, call: ReplyCall) {
    super(place, events);
    this.#call = call;
    this.#at = at(place);
    this.added(this.#item("in_progress"));
  }

  input(text: string): void {
    this.#input += text;
    const type = this.#isCustom ? "response.custom_tool_call_input.delta" : "response.function_call_arguments.delta";
    this.events.event(type, `${this.#at},"delta":${JSON.stringify(text)}`);
  }

  done(): Json {
    const text = JSON.stringify(this.#input);
    if (this.#isCustom) this.events.event("response.custom_tool_call_input.done", `${this.#at},"input":${text}`);
    else {
      const name = JSON.stringify(this.#call.name);
      this.events.event("response.function_call_arguments.done", `${this.#at},"name":${name},"arguments":${text}`);
    }
    return this.ended(this.#item("completed"));
  }

  /** Half of its input must not be run. */
  cut(): Json {
    return this.#item("incomplete");
  }

  get #isCustom(): boolean {
    return this.#call.kind === "custom";
  }

  #item(status: string): Json {
    const { callId, name, namespace } = this.#call;
    const own = this.#isCustom
      ? { type: "custom_tool_call", input: this.#input }
      : { type: "function_call", arguments: this.#input };
    return {
      id: this.place.id,
      ...own,
      status,
      call_id: callId,
      name,
      ...(namespace === undefined ? {} : { namespace }),
    };
  }
}

/** Beginnings of ids, which clients tell kinds of items by. */
export const idPrefixes = { message: "msg", reasoning: "rs", function: "fc", custom: "ctc" } as const;
