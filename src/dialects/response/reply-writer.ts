// Writes an answer as a response: as its events, or as a whole.
import type { ReasoningProof } from "../conversation/conversation.ts";
import type { ReplyCall, ReplyEnd, ReplyFault, ReplyHead, ReplyUsage, ReplyWriter } from "../conversation/reply.ts";
import { isObject, type Json } from "./json.ts";
import {
  type EventSink,
  idPrefixes,
  OpenCall,
  OpenMessage,
  OpenReasoning,
  type ReasoningOptions,
} from "./output-items.ts";
import { type ResponseState, responseBase, responseState } from "./response-object.ts";

/** Codes of a failed response that Codex acts upon; all others it takes for a fault that may pass. */
const knownCodes: ReadonlySet<string> = new Set([
  ...["context_length_exceeded", "insufficient_quota", "rate_limit_exceeded", "invalid_prompt", "server_is_overloaded"],
]);
const ownCodes: Readonly<Record<string, string>> = {
  service_unavailable: "server_is_overloaded",
  invalid_request: "invalid_prompt",
};

export class ResponseWriter implements ReplyWriter, EventSink {
  readonly #head: ReplyHead;
  readonly #base: Json;
  readonly #reasoningOptions: ReasoningOptions;
  /** Items that are done, at their places. */
  readonly #output: Json[] = [];
  /** The items that are not done: one that is said, or the calls of tools, by their index. */
  #message: OpenMessage | undefined;
  #reasoning: OpenReasoning | undefined;
  readonly #calls = new Map<number, OpenCall>();
  #items = 0;
  #sequence = 0;
  #events = "";
  #ended: ReplyEnd | undefined;

  constructor(head: ReplyHead) {
    this.#head = head;
    this.#base = responseBase(head);
    const { include, reasoning } = head.request;
    const summary = isObject(reasoning) ? (reasoning["summary"] ?? reasoning["generate_summary"]) : undefined;
    this.#reasoningOptions = {
      asSummary: typeof summary === "string" && summary !== "none",
      isSealed: Array.isArray(include) && include.includes("reasoning.encrypted_content"),
      seal: head.seal,
    };
  }

  event(type: string, members: string): void {
    this.#begin();
    this.#tell(type, members);
  }

  block(): void {
    this.#message?.endPart();
    this.#endReasoning();
  }

  text(text: string, logprobs?: readonly unknown[]): void {
    if (text !== "") this.#openMessage().text(text, logprobs);
  }

  refusal(text: string): void {
    if (text !== "") this.#openMessage().refusal(text);
  }

  reasoning(text: string): void {
    if (text !== "") this.#openReasoning().text(text);
  }

  proof(proof: ReasoningProof): void {
    this.#openReasoning().prove(proof);
    this.#endReasoning();
  }

  /** It stays open to the end: its arguments may go on behind what is said after it. */
  call(index: number, call: ReplyCall): void {
    this.#endMessage();
    this.#endReasoning();
    if (!this.#calls.has(index)) this.#calls.set(index, new OpenCall(this.#place(call.kind), this, call));
  }

  arguments(index: number, text: string): void {
    this.#calls.get(index)?.input(text);
  }

  usage(): void {}

  end(end: ReplyEnd): void {
    this.#ended = end;
  }

  take(): string {
    this.#begin();
    const events = this.#events;
    this.#events = "";
    return events;
  }

  ending(usage: ReplyUsage): string {
    this.#endAll(this.#isCut);
    const state = this.#finalState(usage);
    this.event(`response.${state.status}`, `"response":${this.#response(state)}`);
    return this.take();
  }

  failure({ code, message }: ReplyFault): string {
    this.#endAll(true);
    const known = ownCodes[code] ?? (knownCodes.has(code) ? code : "server_error");
    const state: ResponseState = { status: "failed", output: this.#output, error: { code: known, message } };
    this.event("response.failed", `"response":${this.#response(state)}`);
    return this.take();
  }

  whole(usage: ReplyUsage): Record<string, unknown> {
    this.#endAll(this.#isCut);
    return { ...this.#base, ...responseState(this.#finalState(usage)) };
  }

  /** Whether the answer ended before all was said. */
  get #isCut(): boolean {
    const reason = this.#ended?.reason;
    return reason === "length" || reason === "context" || reason === "filter";
  }

  #finalState(usage: ReplyUsage): ResponseState {
    const reason = this.#ended?.reason;
    const output = this.#output;
    if (reason === "length" || reason === "context")
      return { status: "incomplete", incomplete: "max_output_tokens", output, usage };
    if (reason === "filter") return { status: "incomplete", incomplete: "content_filter", output, usage };
    return { status: "completed", output, usage };
  }

  #begin(): void {
    if (this.#sequence > 0) return;
    const response = this.#response({ status: "in_progress", output: [] });
    this.#tell("response.created", `"response":${response}`);
    this.#tell("response.in_progress", `"response":${response}`);
  }

  #tell(type: string, members: string): void {
    this.#events += `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.#sequence++},${members}}\n\n`;
  }

  #response(state: ResponseState): string {
    return JSON.stringify({ ...this.#base, ...responseState(state) });
  }

  #place(kind: keyof typeof idPrefixes): { id: string; index: number } {
    const index = this.#items++;
    return { id: `${idPrefixes[kind]}_${this.#head.id.replace(/^resp_/, "")}_${index}`, index };
  }

  #openMessage(): OpenMessage {
    this.#endReasoning();
    this.#message ??= new OpenMessage(this.#place("message"), this);
    return this.#message;
  }

  #openReasoning(): OpenReasoning {
    this.#endMessage();
    this.#reasoning ??= new OpenReasoning(this.#place("reasoning"), this, this.#reasoningOptions);
    return this.#reasoning;
  }

  #endMessage(isCut = false): void {
    this.#keep(this.#message, isCut);
    this.#message = undefined;
  }

  #endReasoning(): void {
    this.#keep(this.#reasoning, false);
    this.#reasoning = undefined;
  }

  #endAll(isCut: boolean): void {
    this.#endMessage(isCut);
    this.#endReasoning();
    for (const call of this.#calls.values()) this.#keep(call, isCut);
    this.#calls.clear();
  }

  #keep(item: OpenMessage | OpenReasoning | OpenCall | undefined, isCut: boolean): void {
    if (item) this.#output[item.index] = isCut ? item.cut() : item.done();
  }
}
