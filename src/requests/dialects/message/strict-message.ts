// Completes the events of a server that uses the Messages API. Missing events are inserted, and repeated events are
// dropped.
import type { ReplyUsage } from "../conversation/reply.ts";
import type { StreamRepair } from "../translation/passed-stream.ts";
import { namedEvent } from "./block-output.ts";
import { isObject, type Json, numberOf, objectOf, textOf } from "./json.ts";
import { begunBy } from "./reply-reader.ts";
import { strictReason } from "./stop-reasons.ts";
import { blocksOf, CallIds, inputPiece, strictBlock } from "./strict-block.ts";
import { deltaUsage, messageUsage, strictUsage } from "./usage.ts";

interface MessageHead {
  readonly id: string;
  readonly model: string;
  readonly promptTokens: number;
  /** Returns the usage that the answer has reported so far. */
  usage(): ReplyUsage;
}

export class StrictMessage implements StreamRepair {
  readonly #head: MessageHead;
  #begun = false;
  /** Index of the block that may continue. Undefined if no block is open. */
  #open: number | undefined;
  #openBlock: Json = {};
  /** Lowest index that no block has used yet. */
  #next = 0;
  #hasCalls = false;
  #hasEnded = false;
  readonly #ids = new CallIds();
  /**
   * The block index that the client gets, for each of the server's block indices. The client's SDKs find a block by its
   * position.
   */
  readonly #indices = new Map<unknown, number>();
  /** The open block as the server sent it. */
  #reportedBlock: Json = {};
  #reportedUsage: unknown;

  constructor(head: MessageHead) {
    this.#head = head;
  }

  /** Returns the event with all members that clients need. If nothing is missing, returns the same object. */
  strict(event: Json): Json {
    const { type, index } = event;
    if (type === "message_start") return this.#strictStart(event);
    if (type === "message_delta") return this.#strictDelta(event);
    if (type === "content_block_start") return this.#strictBlock(event);
    if (type !== "content_block_delta" && type !== "content_block_stop") return event;
    const delta = objectOf(event["delta"]);
    let own = this.#indices.get(index);
    if (own === undefined && typeof index === "number" && begunBy(delta)) {
      own = this.#next;
      this.#indices.set(index, own);
    }
    const piece = this.#strictPiece(delta);
    if ((own ?? index) === index && piece === delta) return event;
    return { ...event, index: own ?? index, ...(type === "content_block_delta" ? { delta: piece } : {}) };
  }

  #strictStart(event: Json): Json {
    const message = objectOf(event["message"]);
    const { content, usage } = message;
    const blocks = Array.isArray(content) ? content : (blocksOf(content || undefined) ?? []);
    const figures = strictUsage(usage, messageUsage({}, this.#head.promptTokens));
    const isStrict = blocks === content && figures === usage && message["role"] !== undefined;
    if (isStrict) return event;
    const { id, model } = this.#head;
    const head = { id, type: "message", role: "assistant", model, stop_reason: null, stop_sequence: null };
    return { ...event, message: { ...head, ...message, content: blocks, usage: figures } };
  }

  #strictBlock(event: Json): Json {
    const { index } = event;
    const reported = objectOf(event["content_block"]);
    const isOpen = this.#open !== undefined && this.#indices.get(index) === this.#open;
    const isRepeated =
      isOpen && this.#reportedBlock["type"] === reported["type"] && this.#reportedBlock["id"] === reported["id"];
    const own = isRepeated ? this.#open : this.#next;
    const block = isRepeated ? this.#openBlock : strictBlock(reported, this.#ids);
    this.#reportedBlock = reported;
    if (typeof index !== "number" || own === undefined) return event;
    this.#indices.set(index, own);
    return own === index && block === reported ? event : { ...event, index: own, content_block: block };
  }

  #strictPiece(delta: Json): Json {
    const { type } = delta;
    if (type === "input_json_delta") {
      const piece = delta["partial_json"];
      return typeof piece === "string" ? delta : { ...delta, partial_json: inputPiece(piece) ?? "" };
    }
    if (type !== undefined || this.#open === undefined) return delta;
    const kind = this.#openBlock["type"];
    if (kind === "text" && typeof delta["text"] === "string") return { type: "text_delta", ...delta };
    if (kind !== "tool_use" || delta["partial_json"] === undefined) return delta;
    return this.#strictPiece({ type: "input_json_delta", ...delta });
  }

  #strictDelta(event: Json): Json {
    const { usage } = event;
    const delta = isObject(event["delta"]) ? event["delta"] : { stop_reason: event["stop_reason"] ?? null };
    const reportedReason = textOf(delta["stop_reason"]);
    const reason = reportedReason ? strictReason(reportedReason, this.#hasCalls) : null;
    const figures = strictUsage(usage, undefined) ?? deltaUsage(this.#head.usage(), this.#head.promptTokens);
    this.#reportedUsage = figures;
    const isStrict = delta === event["delta"] && figures === usage && reason === (delta["stop_reason"] ?? null);
    return isStrict ? event : { ...event, delta: { ...delta, stop_reason: reason }, usage: figures };
  }

  before(event: Json): string | undefined {
    const { type } = event;
    const index = numberOf(event["index"]);
    if (type === "message_start") return this.#start();
    if (type === "ping" || type === "error") return "";
    const start = this.#begun ? "" : this.#startEvent();
    if (type === "content_block_start") return added(start, this.#blockStart(index, objectOf(event["content_block"])));
    if (type === "content_block_delta") return added(start, this.#blockDelta(index, objectOf(event["delta"])));
    if (type === "content_block_stop") return added(start, this.#blockStop(index));
    if (type === "message_delta") return added(start, this.#messageDelta(objectOf(event["delta"])));
    if (type === "message_stop") return start + this.#stopEvent() + this.#deltaEvent();
    return start;
  }

  #start(): string | undefined {
    if (this.#begun) return undefined;
    this.#begun = true;
    return "";
  }

  #blockStart(index: number | undefined, block: Json): string | undefined {
    const isOpen = index === this.#open && index !== undefined;
    if (isOpen && this.#openBlock["type"] === block["type"] && this.#openBlock["id"] === block["id"]) return undefined;
    const stop = this.#stopEvent();
    this.#open = index;
    this.#openBlock = block;
    this.#next = Math.max(this.#next, (index ?? 0) + 1);
    this.#hasCalls ||= block["type"] === "tool_use";
    return stop;
  }

  #blockDelta(index: number | undefined, delta: Json): string {
    const block = index === undefined || index < this.#next ? undefined : begunBy(delta);
    if (!block) return "";
    const stop = this.#blockStart(index, block) ?? "";
    return stop + namedEvent({ type: "content_block_start", index, content_block: block });
  }

  #blockStop(index: number | undefined): string | undefined {
    if (index !== this.#open) return undefined;
    this.#open = undefined;
    return "";
  }

  #messageDelta(delta: Json): string | undefined {
    if (this.#hasEnded) return undefined;
    this.#hasEnded = textOf(delta["stop_reason"]) !== undefined;
    return this.#hasEnded ? this.#stopEvent() : "";
  }

  #startEvent(): string {
    this.#begun = true;
    const { id, model, promptTokens } = this.#head;
    const message = {
      ...{ id, type: "message", role: "assistant", model, content: [], stop_reason: null, stop_sequence: null },
      usage: messageUsage({}, promptTokens),
    };
    return namedEvent({ type: "message_start", message });
  }

  #stopEvent(): string {
    const index = this.#open;
    this.#open = undefined;
    return index === undefined ? "" : namedEvent({ type: "content_block_stop", index });
  }

  #deltaEvent(): string {
    if (this.#hasEnded) return "";
    this.#hasEnded = true;
    const delta = { stop_reason: this.#hasCalls ? "tool_use" : "end_turn", stop_sequence: null };
    const usage = this.#reportedUsage ?? deltaUsage(this.#head.usage(), this.#head.promptTokens);
    return namedEvent({ type: "message_delta", delta, usage });
  }
}

/**
 * Returns a whole message with all members that clients need. If the usage of the message lacks figures, they come from
 * `usage`.
 */
export function strictMessage(message: Json, usage: ReplyUsage): Json {
  const ids = new CallIds();
  const content = blocksOf(message["content"]) ?? [];
  const blocks = content.map((block) => strictBlock(objectOf(block), ids));
  const areStrict = content === message["content"] && blocks.every((block, index) => block === content[index]);
  const reportedReason = textOf(message["stop_reason"]);
  const reason = strictReason(
    reportedReason,
    blocks.some(({ type }) => type === "tool_use"),
  );
  const figures = strictUsage(message["usage"], messageUsage(usage, usage.promptTokens ?? 0));
  if (areStrict && reason === reportedReason && figures === message["usage"]) return message;
  const head = { type: "message", role: "assistant", stop_sequence: null };
  return { ...head, ...message, content: areStrict ? content : blocks, stop_reason: reason, usage: figures };
}

function added(before: string, rest: string | undefined): string | undefined {
  return rest === undefined ? undefined : before + rest;
}
