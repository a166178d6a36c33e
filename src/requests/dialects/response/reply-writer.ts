// Writes an answer as a response, either as events or as a whole.
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
import { compactionItem, isToCompact } from "./compaction.ts";
import { isObject, type Json } from "./json.ts";
import {
  type EventSink,
  idPrefixes,
  OpenCall,
  type OpenItem,
  OpenMessage,
  OpenReasoning,
  type ReasoningOptions,
  textDelta,
  WholeItem,
} from "./output-items.ts";
import { type ResponseState, responseBase, responseState } from "./response-object.ts";

/** Error codes of a failed response that Codex reacts to. Codex treats all other codes as temporary errors. */
const knownCodes: ReadonlySet<string> = new Set([
  ...["context_length_exceeded", "insufficient_quota", "rate_limit_exceeded", "invalid_prompt", "server_is_overloaded"],
]);
/**
 * If a retry does not help, the error is reported as `invalid_prompt`, because Codex does not retry after this code.
 */
const ownCodes: ReadonlyMap<string, string> = new Map([
  ["service_unavailable", "server_is_overloaded"],
  ...[
    ...["invalid_request", "string_above_max_length", "content_filter", "content_policy_violation"],
    ...["moderation_blocked", "unsupported_parameter", "unsupported_value"],
  ].map((code) => [code, "invalid_prompt"] as const),
]);

/** Returns the error code of a failed response that clients know, for an error code of the gateway. */
export function failureCode(code: string): string {
  return ownCodes.get(code) ?? (knownCodes.has(code) ? code : "server_error");
}

/**
 * Writes events if the request has `stream: true`. A call stays open while other calls begin, because the arguments of
 * several calls may be interleaved. Any other item ends when the next item begins.
 */
export class ResponseWriter implements ReplyWriter, EventSink {
  readonly #head: ReplyHead;
  readonly #base: Json;
  readonly #reasoningOptions: ReasoningOptions;
  readonly #output: Json[] = [];
  /** The items that are open: the message, the reasoning, and the calls by their index. */
  #message: OpenMessage | undefined;
  #reasoning: OpenReasoning | undefined;
  readonly #calls = new Map<number, OpenCall>();
  /** Open calls for which it has not been checked yet whether their arguments are complete. */
  #newCalls: OpenCall[] = [];
  readonly #callIds = new Set<string>();
  readonly #isStream: boolean;
  #items = 0;
  #sequence = 0;
  #events = "";
  #ended: ReplyEnd | undefined;
  #hasRefusal = false;
  /** The text of a compaction so far. At the end, this text becomes one item. Undefined for other answers. */
  #summary: string | undefined;

  constructor(head: ReplyHead) {
    this.#head = head;
    this.#base = responseBase(head);
    this.#isStream = head.request["stream"] === true;
    if (isToCompact(head.request)) this.#summary = "";
    const { include, reasoning } = head.request;
    const summary = isObject(reasoning) ? (reasoning["summary"] ?? reasoning["generate_summary"]) : undefined;
    this.#reasoningOptions = {
      asSummary: typeof summary === "string" && summary !== "none",
      isSealed: Array.isArray(include) && include.includes("reasoning.encrypted_content"),
      seal: head.seal,
    };
  }

  event(type: string, members: string): void {
    if (!this.#isStream) return;
    this.#begin();
    this.#event(type, members);
  }

  block(): void {
    this.#message?.endPart();
    this.#endReasoning();
  }

  text(text: string, logprobs?: readonly unknown[]): void {
    if (this.#summary !== undefined) {
      this.#summary += text;
      return;
    }
    // A token may be only half a character. Such a token has a probability, but no text yet.
    if (text !== "" || (logprobs && logprobs.length > 0)) this.#openMessage().text(text, logprobs);
  }

  refusal(text: string): void {
    if (text === "") return;
    this.#hasRefusal = true;
    this.#openMessage().refusal(text);
  }

  reasoning(text: string, isSummary: boolean): void {
    if (text === "" || this.#summary !== undefined) return;
    if (this.#reasoning && this.#reasoning.isSummary !== isSummary) this.#endReasoning();
    this.#openReasoning(isSummary).text(text);
  }

  proof(proof: ReasoningProof): void {
    if (this.#summary !== undefined) return;
    this.#openReasoning(false).prove(proof);
    this.#endReasoning();
  }

  call(index: number, call: ReplyCall): void {
    if (this.#summary !== undefined) return;
    this.#endMessage();
    this.#endReasoning();
    const before = this.#calls.get(index);
    if (before && !before.isDone) this.#end(before);
    const position = this.#nextPosition(call.kind);
    // Some servers send calls without ids, or several calls with the same id, but a client finds the result of a call
    // by its id.
    const isFree = call.callId !== "" && !this.#callIds.has(call.callId);
    const callId = isFree ? call.callId : position.id.replace(/^[a-z]+/, "call");
    this.#callIds.add(callId);
    const begun = new OpenCall(position, this, { ...call, callId });
    this.#calls.set(index, begun);
    this.#newCalls.push(begun);
  }

  arguments(index: number, text: string): void {
    if (text !== "") this.#calls.get(index)?.input(text);
  }

  usage(): void {}

  end(end: ReplyEnd): void {
    this.#ended = end;
  }

  take(): string {
    if (this.#isStream) this.#begin();
    const events = this.#events;
    this.#events = "";
    return events;
  }

  textEvents(): TextEvents | undefined {
    const message = this.#message;
    const at = this.#isStream && this.#summary === undefined ? message?.openText : undefined;
    if (at === undefined) return undefined;
    const type = textDelta;
    return {
      after: '","logprobs":[]}\n\n',
      next: () => `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.#sequence++},${at},"delta":"`,
      took: (text) => message?.takeText(text),
    };
  }

  ending(usage: ReplyUsage): string {
    this.#endAll();
    const state = this.#finalState(usage);
    this.event(`response.${state.status}`, `"response":${this.#response(state)}`);
    return this.take();
  }

  failure({ code, message }: ReplyFault): string {
    // Clients act on finished items. If an item was cut off, it is therefore marked as incomplete.
    for (const item of this.#openItems()) this.#output[item.index] = item.cut();
    const state: ResponseState = {
      status: "failed",
      output: this.#output,
      error: { code: failureCode(code), message },
    };
    this.event("response.failed", `"response":${this.#response(state)}`);
    return this.take();
  }

  whole(usage: ReplyUsage): Record<string, unknown> {
    this.#endAll();
    return { ...this.#base, ...responseState(this.#finalState(usage)) };
  }

  #finalState(usage: ReplyUsage): ResponseState {
    const { reason, mark } = this.#ended ?? {};
    const output = this.#output;
    if (reason === "length" || reason === "context")
      return { status: "incomplete", incomplete: "max_output_tokens", output, usage, mark };
    // If a refusal has no text, it would look like an empty answer.
    if (reason === "filter" || (reason === "refusal" && !this.#hasRefusal))
      return { status: "incomplete", incomplete: "content_filter", output, usage, mark };
    return { status: "completed", output, usage, mark, completedAt: this.#head.nowSeconds?.() };
  }

  #begin(): void {
    if (this.#sequence > 0) return;
    const response = this.#response({ status: "in_progress", output: [] });
    this.#event("response.created", `"response":${response}`);
    this.#event("response.in_progress", `"response":${response}`);
  }

  #event(type: string, members: string): void {
    this.#events += `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.#sequence++},${members}}\n\n`;
  }

  #response(state: ResponseState): string {
    return JSON.stringify({ ...this.#base, ...responseState(state) });
  }

  #nextPosition(kind: keyof typeof idPrefixes): { id: string; index: number } {
    const index = this.#items++;
    return { id: `${idPrefixes[kind]}_${this.#head.id.replace(/^resp_/, "")}_${index}`, index };
  }

  #openMessage(): OpenMessage {
    if (this.#message) return this.#message;
    this.#endReasoning();
    this.#endFinishedCalls();
    this.#message = new OpenMessage(this.#nextPosition("message"), this);
    return this.#message;
  }

  #openReasoning(isSummary: boolean): OpenReasoning {
    if (this.#reasoning) return this.#reasoning;
    this.#endMessage();
    this.#endFinishedCalls();
    this.#reasoning = new OpenReasoning(this.#nextPosition("reasoning"), this, this.#reasoningOptions, isSummary);
    return this.#reasoning;
  }

  #endMessage(): void {
    if (this.#message) this.#end(this.#message);
    this.#message = undefined;
  }

  #endReasoning(): void {
    if (this.#reasoning) this.#end(this.#reasoning);
    this.#reasoning = undefined;
  }

  #endFinishedCalls(): void {
    for (const call of this.#newCalls) if (!call.isDone && call.isOver()) this.#end(call);
    this.#newCalls = [];
  }

  /** Ends all open items. If the answer was cut off, its last item is incomplete. */
  #endAll(): void {
    const reason = this.#ended?.reason;
    const isCut = reason === "length" || reason === "context" || reason === "filter";
    // If the summary is only partial, the rest of the conversation would be lost. Such a summary is dropped.
    if (this.#summary && !isCut) {
      const position = this.#nextPosition("compaction");
      this.#end(new WholeItem(position, this, compactionItem(position.id, this.#summary, this.#head.seal)));
      this.#summary = "";
    }
    for (const item of this.#openItems()) this.#end(item, !(isCut && item.index === this.#items - 1));
    this.#message = undefined;
    this.#reasoning = undefined;
    this.#calls.clear();
  }

  /** Returns the open items, in the order of the output. */
  #openItems(): OpenItem[] {
    const calls = [...this.#calls.values()].filter((call) => !call.isDone);
    const items = [...calls, this.#message, this.#reasoning].filter((item) => item !== undefined);
    return items.sort((a, b) => a.index - b.index);
  }

  #end(item: OpenItem, isWhole?: boolean): void {
    this.#output[item.index] = item.done(isWhole);
  }
}
