// Builds the output items of a response piece by piece. Each item writes its own events and its final form.

import type { Seal } from "../../../domain/seal.ts";
import type { ReasoningProof } from "../conversation/conversation.ts";
import type { ReplyCall } from "../conversation/reply.ts";
import { isObject, type Json } from "./json.ts";
import { sealReasoning } from "./sealed-reasoning.ts";

/**
 * Receives the events of an item. `members` contains all members of the event except its type and number, as JSON
 * without the braces.
 */
export interface EventSink {
  event(type: string, members: string): void;
}

interface ItemPosition {
  /** Id of the item, and index of the item in the output. */
  id: string;
  index: number;
}

function at({ id, index }: ItemPosition): string {
  return `"item_id":${JSON.stringify(id)},"output_index":${index}`;
}

export abstract class OpenItem {
  protected readonly position: ItemPosition;
  protected readonly events: EventSink;

  constructor(position: ItemPosition, events: EventSink) {
    this.position = position;
    this.events = events;
  }

  /** Index of the item in the output. */
  get index(): number {
    return this.position.index;
  }

  /** Ends the item, and returns its final form. `isWhole` is false if the answer was cut off within this item. */
  abstract done(isWhole?: boolean): Json;

  /** Returns the item as it is now, because the answer was cut off here. Clients must not act on the item. */
  abstract cut(): Json;

  protected added(item: Json): void {
    this.events.event(
      "response.output_item.added",
      `"output_index":${this.position.index},"item":${JSON.stringify(item)}`,
    );
  }

  protected ended(item: Json): Json {
    this.events.event(
      "response.output_item.done",
      `"output_index":${this.position.index},"item":${JSON.stringify(item)}`,
    );
    return item;
  }
}

/** An item that is sent in one piece. Clients could not use parts of it. */
export class WholeItem extends OpenItem {
  readonly #item: Json;

  constructor(position: ItemPosition, events: EventSink, item: Json) {
    super(position, events);
    this.#item = item;
    this.added(item);
  }

  done(): Json {
    return this.ended(this.#item);
  }

  cut(): Json {
    return this.#item;
  }
}

/** The type of an event that contains a piece of text. */
export const textDelta = "response.output_text.delta";

type PartKind = "output_text" | "refusal";

export class OpenMessage extends OpenItem {
  readonly #content: Json[] = [];
  #kind: PartKind | undefined;
  #text = "";
  #logprobs: unknown[] = [];
  /** The members with which each event of the current part begins. */
  #at = "";

  constructor(position: ItemPosition, events: EventSink) {
    super(position, events);
    this.added(this.#item("in_progress", []));
  }

  text(text: string, logprobs: readonly unknown[] | undefined): void {
    this.#open("output_text");
    this.#text += text;
    const own = (logprobs ?? []).map(logprobToWire);
    for (const one of own) this.#logprobs.push(one);
    const logprobsText = own.length === 0 ? "[]" : JSON.stringify(own);
    this.events.event(textDelta, `${this.#at},"delta":${JSON.stringify(text)},"logprobs":${logprobsText}`);
  }

  /** The members with which each text event begins. Undefined if no text is open. */
  get openText(): string | undefined {
    return this.#kind === "output_text" ? this.#at : undefined;
  }

  /** Adds a piece to the open text. The caller writes the event for this piece. */
  takeText(text: string): void {
    this.#text += text;
  }

  refusal(text: string): void {
    this.#open("refusal");
    this.#text += text;
    this.events.event("response.refusal.delta", `${this.#at},"delta":${JSON.stringify(text)}`);
  }

  /** Ends the current part. If more text arrives, it begins a new part. */
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

  done(isWhole = true): Json {
    this.endPart();
    return this.ended(this.#item(isWhole ? "completed" : "incomplete", this.#content));
  }

  cut(): Json {
    const part = this.#kind === undefined ? [] : [this.#part(this.#kind, this.#text)];
    return this.#item("incomplete", [...this.#content, ...part]);
  }

  #item(status: string, content: readonly Json[]): Json {
    return { id: this.position.id, type: "message", status, role: "assistant", content };
  }

  #open(kind: PartKind): void {
    if (this.#kind === kind) return;
    this.endPart();
    this.#kind = kind;
    this.#at = `${at(this.position)},"content_index":${this.#content.length}`;
    this.events.event("response.content_part.added", `${this.#at},"part":${JSON.stringify(this.#part(kind, ""))}`);
  }

  #part(kind: PartKind, text: string): Json {
    if (kind === "refusal") return { type: "refusal", refusal: text };
    return { type: "output_text", annotations: [], logprobs: this.#logprobs, text };
  }
}

/** Adds members that servers of chat completions may leave out but that clients of Responses require. */
function logprobToWire(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { bytes, top_logprobs: top } = value;
  const others = Array.isArray(top) ? top.map(likelyTokenToWire) : [];
  return { ...value, bytes: bytes ?? [], top_logprobs: others };
}

function likelyTokenToWire(value: unknown): unknown {
  return isObject(value) ? { ...value, bytes: value["bytes"] ?? [] } : value;
}

export interface ReasoningOptions {
  /**
   * True if reasoning is sent as a summary. Clients show a summary if they asked for one. If false, the reasoning
   * itself is sent.
   */
  asSummary: boolean;
  /** True if the client keeps the reasoning in sealed form. */
  isSealed: boolean;
  seal: Seal;
}

export class OpenReasoning extends OpenItem {
  /** True if the model server itself sends the reasoning as a summary. */
  readonly isSummary: boolean;
  readonly #options: ReasoningOptions;
  readonly #at: string;
  #text = "";
  #proof: ReasoningProof | undefined;

  constructor(position: ItemPosition, events: EventSink, options: ReasoningOptions, isSummary: boolean) {
    super(position, events);
    this.isSummary = isSummary;
    this.#options = options;
    this.#at = `${at(position)},"${options.asSummary ? "summary" : "content"}_index":0`;
    this.added({ id: position.id, type: "reasoning", summary: [] });
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
    if (this.#text !== "") this.#end();
    return this.ended(this.cut());
  }

  cut(): Json {
    const { asSummary } = this.#options;
    const parts = this.#text === "" ? [] : [this.#part(this.#text)];
    const sealed = this.#sealed();
    return {
      id: this.position.id,
      type: "reasoning",
      summary: asSummary ? parts : [],
      ...(asSummary ? {} : { content: parts }),
      ...(sealed === "" ? {} : { encrypted_content: sealed }),
    };
  }

  /**
   * Returns the sealed reasoning. A vendor's proof is always sealed, because without it the conversation could not
   * continue. Encrypted reasoning of OpenAI is already sealed and needs no text.
   */
  #sealed(): string {
    const { isSealed, seal } = this.#options;
    const proof = this.#proof;
    if (proof?.kind === "encrypted") return proof.data;
    return isSealed || proof ? sealReasoning(seal, { text: this.#text, proof }) : "";
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
  isDone = false;

  constructor(position: ItemPosition, events: EventSink, call: ReplyCall) {
    super(position, events);
    this.#call = call;
    this.#at = at(position);
    this.added(this.#item("in_progress"));
  }

  input(text: string): void {
    // If the arguments are complete, more text could only spoil them.
    if (this.isDone) return;
    this.#input += text;
    const type = this.#isCustom ? "response.custom_tool_call_input.delta" : "response.function_call_arguments.delta";
    this.events.event(type, `${this.#at},"delta":${JSON.stringify(text)}`);
  }

  /**
   * Reports whether the arguments are a complete object. More text could only spoil complete arguments. The text `{}`
   * does not count as complete, because some servers send it as a placeholder before the real arguments.
   */
  isOver(): boolean {
    return !this.#isCustom && this.#input.trimEnd().endsWith("}") && isFilledObject(this.#input);
  }

  /** A call without arguments gets an empty object, because clients parse the arguments as JSON. */
  done(isWhole = true): Json {
    if (isWhole && this.#input === "" && !this.#isCustom) this.input("{}");
    this.isDone = true;
    const text = JSON.stringify(this.#input);
    if (this.#isCustom) this.events.event("response.custom_tool_call_input.done", `${this.#at},"input":${text}`);
    else {
      const name = JSON.stringify(this.#call.name);
      this.events.event("response.function_call_arguments.done", `${this.#at},"name":${name},"arguments":${text}`);
    }
    return this.ended(this.#item(isWhole ? "completed" : "incomplete"));
  }

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
      id: this.position.id,
      ...own,
      status,
      call_id: callId,
      name,
      ...(namespace === undefined ? {} : { namespace }),
    };
  }
}

function isFilledObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) && Object.keys(value).length > 0;
  } catch {
    return false;
  }
}

/** Prefixes of item ids. Clients recognise the kind of an item by its prefix. */
export const idPrefixes = {
  message: "msg",
  reasoning: "rs",
  function: "fc",
  custom: "ctc",
  compaction: "cmp",
} as const;
