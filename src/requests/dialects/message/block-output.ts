// Writes the content blocks of an answer, either as events of a stream, or collected for a whole message.
import { inputObject, type Json } from "./json.ts";

export type DeltaKind = "text" | "thinking" | "call" | "signature";

/** Receives blocks in order. Each block begins after the end of the previous one. */
export interface BlockOutput {
  /** `block` is the empty block that the event `content_block_start` contains. */
  start(block: Json): void;
  delta(kind: DeltaKind, text: string): void;
  stop(): void;
}

/** Returns one Server-Sent Event with its name. SDKs skip events without a name. */
export function namedEvent(data: Json): string {
  return `event: ${String(data["type"])}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** The JSON before the text of a delta: the type of the delta, and the name of the member that holds the text. */
const deltaStarts: Readonly<Record<DeltaKind, string>> = {
  text: '"text_delta","text":',
  thinking: '"thinking_delta","thinking":',
  call: '"input_json_delta","partial_json":',
  signature: '"signature_delta","signature":',
};

/** Events of a stream that wait until they are taken. */
export class BlockEvents implements BlockOutput {
  #events = "";
  #index = -1;
  /** The text with which each event of the current block begins, up to the type of the event's delta. */
  #start = "";

  /** Adds an event that belongs to no block. */
  add(event: string): void {
    this.#events += event;
  }

  take(): string {
    const events = this.#events;
    this.#events = "";
    return events;
  }

  /** Returns the beginning of a text event, up to the text. */
  get textStart(): string {
    return `${this.#start}${deltaStarts.text}"`;
  }

  start(block: Json): void {
    const index = ++this.#index;
    this.#start = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":`;
    this.#events += namedEvent({ type: "content_block_start", index, content_block: block });
  }

  delta(kind: DeltaKind, text: string): void {
    this.#events += `${this.#start}${deltaStarts[kind]}${JSON.stringify(text)}}}\n\n`;
  }

  stop(): void {
    this.#events += `event: content_block_stop\ndata: {"type":"content_block_stop","index":${this.#index}}\n\n`;
  }
}

/** Collects the blocks of a whole message. */
export class BlockList implements BlockOutput {
  readonly content: Json[] = [];
  #block: Json = {};
  #pieces = new Map<DeltaKind, string[]>();

  start(block: Json): void {
    this.#block = block;
    this.#pieces = new Map();
  }

  delta(kind: DeltaKind, text: string): void {
    const pieces = this.#pieces.get(kind);
    if (pieces) pieces.push(text);
    else this.#pieces.set(kind, [text]);
  }

  stop(): void {
    const filled: Record<string, unknown> = { ...this.#block };
    for (const [kind, pieces] of this.#pieces) {
      if (kind === "call") filled["input"] = inputObject(pieces.join(""));
      else filled[kind] = pieces.join("");
    }
    this.content.push(filled);
  }
}
