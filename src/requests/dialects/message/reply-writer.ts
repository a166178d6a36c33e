// Writes an answer in the Messages format, either as a stream of blocks one after the other or as one whole message.
import type { ReasoningProof } from "../conversation/conversation.ts";
import type {
  ReplyCall,
  ReplyEnd,
  ReplyFault,
  ReplyHead,
  ReplyUsage,
  ReplyWriter,
  TextEvents,
} from "../conversation/reply.ts";
import { BlockEvents, BlockList, namedEvent } from "./block-output.ts";
import { BlockQueue } from "./block-queue.ts";
import { type Json, objectOf } from "./json.ts";
import { messageError } from "./message-error.ts";
import { stopReasonOf } from "./stop-reasons.ts";
import { deltaUsage, messageUsage } from "./usage.ts";

const ping = namedEvent({ type: "ping" });

/**
 * If the request has `stream: true`, writes events. Otherwise collects the blocks of a whole message. Streamed
 * arguments are the model's text, even if this text is no JSON object. In `whole`, `inputObject` converts the
 * arguments. Log-probabilities are left out, because the Messages API has none.
 */
export class MessageWriter implements ReplyWriter {
  readonly #head: ReplyHead;
  readonly #events: BlockEvents | undefined;
  readonly #list = new BlockList();
  readonly #blocks: BlockQueue;
  #usage: ReplyUsage = {};
  #end: ReplyEnd = { reason: "stop" };
  #hasBegun = false;
  /** Ids of all calls so far. */
  readonly #callIds = new Set<string>();
  #hasRefusal = false;

  constructor(head: ReplyHead) {
    const { request, seal } = head;
    this.#head = head;
    this.#events = request["stream"] === true ? new BlockEvents() : undefined;
    const omitsThinking = objectOf(request["thinking"])["display"] === "omitted";
    this.#blocks = new BlockQueue(this.#events ?? this.#list, seal, omitsThinking);
  }

  block(): void {
    this.#blocks.startAnew();
  }

  text(text: string): void {
    if (!this.#hasBegun) this.#begin();
    if (text !== "") this.#blocks.text(text);
  }

  refusal(text: string): void {
    this.#hasRefusal = true;
    this.text(text);
  }

  reasoning(text: string): void {
    if (!this.#hasBegun) this.#begin();
    if (text !== "") this.#blocks.thinking(text);
  }

  /**
   * Drops encrypted reasoning of another vendor. A client of the Messages API cannot use it, and does not send it back
   * to that vendor.
   */
  proof({ kind, data }: ReasoningProof): void {
    if (!this.#hasBegun) this.#begin();
    if (kind === "signature") this.#blocks.signature(data);
    else if (kind === "redacted") this.#blocks.redacted(data);
    else this.#blocks.startAnew();
  }

  call(index: number, call: ReplyCall): void {
    if (!this.#hasBegun) this.#begin();
    // Some servers give several calls the same id, but a client finds the result of a call by its id.
    const isFree = call.callId !== "" && !this.#callIds.has(call.callId);
    const callId = isFree
      ? call.callId
      : `toolu_${this.#head.id.replace(/^msg_/, "").replaceAll("-", "")}_${this.#callIds.size}`;
    this.#callIds.add(callId);
    this.#blocks.call(index, { ...call, callId });
  }

  arguments(index: number, text: string): void {
    if (text !== "") this.#blocks.arguments(index, text);
  }

  usage(usage: ReplyUsage): void {
    this.#usage = usage;
  }

  end(end: ReplyEnd): void {
    if (!this.#hasBegun) this.#begin();
    this.#end = this.#asAsked(end);
    this.#blocks.end();
  }

  take(): string {
    return this.#events?.take() ?? "";
  }

  textEvents(): TextEvents | undefined {
    const before = this.#blocks.isInText ? this.#events?.textStart : undefined;
    return before === undefined ? undefined : { after: '"}}\n\n', next: () => before };
  }

  ending(usage: ReplyUsage): string {
    if (!this.#hasBegun) this.#begin();
    const delta = { ...this.#endMembers(), container: null };
    const counted = deltaUsage(usage, this.#head.promptTokens);
    const { mark } = this.#end;
    const ended = { type: "message_delta", delta, usage: counted, ...(mark && { headrace: mark }) };
    return this.take() + namedEvent(ended) + namedEvent({ type: "message_stop" });
  }

  failure(fault: ReplyFault): string {
    return this.take() + namedEvent(messageError(fault));
  }

  whole(usage: ReplyUsage): Record<string, unknown> {
    return {
      ...this.#message(this.#list.content, usage),
      ...this.#endMembers(),
    };
  }

  /** Begins the stream as Anthropic does. Clients treat the event `ping` as a sign that the server is alive. */
  #begin(): void {
    this.#hasBegun = true;
    const message = this.#message([], { ...this.#usage, completionTokens: 0, reasoningTokens: undefined });
    this.#events?.add(namedEvent({ type: "message_start", message }) + ping);
  }

  /** Returns a message with all members that SDKs have since version 1.0, even if they are empty. */
  #message(content: readonly Json[], usage: ReplyUsage): Record<string, unknown> {
    const { id, model, promptTokens } = this.#head;
    return {
      id,
      type: "message",
      role: "assistant",
      model,
      content,
      container: null,
      diagnostics: null,
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      usage: messageUsage(usage, promptTokens),
    };
  }

  /** Drops a stop text that the client did not ask for. Some servers report stop texts of their own templates. */
  #asAsked(end: ReplyEnd): ReplyEnd {
    if (end.reason !== "sequence") return end;
    const asked = this.#head.request["stop_sequences"];
    return Array.isArray(asked) && asked.includes(end.sequence) ? end : { reason: "stop", mark: end.mark };
  }

  #endMembers(): Json {
    const reason = stopReasonOf(this.#end, this.#callIds.size > 0, this.#hasRefusal);
    const isSequence = this.#end.reason === "sequence";
    return {
      stop_reason: reason,
      stop_sequence: isSequence ? (this.#end.sequence ?? null) : null,
      stop_details: reason === "refusal" ? { type: "refusal", category: null, explanation: null } : null,
    };
  }
}
