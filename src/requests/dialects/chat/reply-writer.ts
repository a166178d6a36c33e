// Writes an answer in the format of chat completions, for a client whose model is served in another format.
import { CollectedReply } from "../conversation/collected-reply.ts";
import type { AnswerPart, CallPart, ReasoningPart, ReasoningProof } from "../conversation/conversation.ts";
import type {
  ReplyCall,
  ReplyEnd,
  ReplyFault,
  ReplyHead,
  ReplySink,
  ReplyUsage,
  ReplyWriter,
} from "../conversation/reply.ts";
import { type Json, listOf, objectOf } from "./json-value.ts";
import { detailsOf, reasoningMembers } from "./reasoning.ts";
import { usageObject } from "./reply-usage.ts";

/** The member from which clients of DeepSeek, of the AI SDK and of LiteLLM read reasoning. */
const reasoningNames = ["reasoning_content"];
const endEvent = "data: [DONE]\n\n";

/** Reports whether the client knows only legacy function calls, because it sent `functions` instead of `tools`. */
function isOlder({ functions, tools }: Json): boolean {
  return listOf(functions).length > 0 && listOf(tools).length === 0;
}

/** Writes a stream if the client requested one. Otherwise collects the answer for `whole`. */
export function chatReplyWriter(head: ReplyHead): ReplyWriter {
  return new ChatReplyWriter(head);
}

class ChatReplyWriter implements ReplyWriter {
  readonly #head: ReplyHead;
  readonly #chunks: ChunkWriter | undefined;
  readonly #collected: CollectedReply | undefined;
  readonly #sink: ReplySink;

  constructor(head: ReplyHead) {
    this.#head = head;
    if (head.request["stream"] === true) this.#chunks = new ChunkWriter(head);
    else this.#collected = new CollectedReply();
    this.#sink = this.#chunks ?? (this.#collected as CollectedReply);
  }

  block(): void {
    this.#sink.block();
  }

  text(text: string, logprobs?: readonly unknown[]): void {
    this.#sink.text(text, logprobs);
  }

  refusal(text: string): void {
    this.#sink.refusal(text);
  }

  reasoning(text: string, isSummary: boolean): void {
    this.#sink.reasoning(text, isSummary);
  }

  proof(proof: ReasoningProof): void {
    this.#sink.proof(proof);
  }

  call(index: number, call: ReplyCall): void {
    this.#sink.call(index, call);
  }

  arguments(index: number, text: string): void {
    this.#sink.arguments(index, text);
  }

  usage(usage: ReplyUsage): void {
    this.#sink.usage(usage);
  }

  end(end: ReplyEnd): void {
    this.#sink.end(end);
  }

  take(): string {
    return this.#chunks?.take() ?? "";
  }

  /**
   * Returns undefined, so that each event is written completely. The source formats number their events, or put more
   * into them than a piece of text.
   */
  textEvents(): undefined {}

  ending(usage: ReplyUsage): string {
    return this.#chunks?.ending(usage) ?? "";
  }

  failure({ status, code, message, param }: ReplyFault): string {
    const rest = this.take();
    return `${rest}data: ${JSON.stringify({ error: { message, type: typeOf(status), param, code } })}\n\n`;
  }

  whole(usage: ReplyUsage): Record<string, unknown> {
    const { id, model, created, request } = this.#head;
    const { parts, ended, logprobs } = this.#collected ?? new CollectedReply();
    const reason = ended?.reason ?? "stop";
    const choice = {
      index: 0,
      message: messageOf(parts, isOlder(request)),
      logprobs: logprobs.length > 0 ? { content: logprobs, refusal: null } : null,
      finish_reason: finishReason(reason, {
        refused: parts.some(({ type }) => type === "refusal"),
        older: isOlder(request),
      }),
    };
    return { id, object: "chat.completion", created, model, choices: [choice], usage: usageObject(usage) };
  }
}

/** Writes each event directly as text, so that a token costs only one short `JSON.stringify` and no tree of objects. */
class ChunkWriter implements ReplySink {
  readonly #begin: string;
  readonly #afterDelta: string;
  readonly #tail: string;
  readonly #textBegin: string;
  readonly #textEnd: string;
  readonly #usageBegin: string | undefined;
  readonly #older: boolean;
  #out = "";
  #begun = false;
  #refused = false;
  /** The position and the kind of each call, and whether the call has no arguments yet. */
  readonly #calls = new Map<number, { position: number; kind: ReplyCall["kind"]; isEmpty: boolean }>();
  /** The current block of reasoning, whose proof arrives together with its whole text. */
  #thought: { pieces: string[]; isSummary: boolean } = { pieces: [], isSummary: false };
  #thoughts = 0;
  #details = 0;

  constructor({ id, model, created, request }: ReplyHead) {
    const head = JSON.stringify({ id, object: "chat.completion.chunk", created, model }).slice(0, -1);
    const wantsUsage = objectOf(request["stream_options"])["include_usage"] === true;
    this.#begin = `data: ${head},"choices":[{"index":0,"delta":`;
    this.#tail = wantsUsage ? '}],"usage":null}\n\n' : "}]}\n\n";
    this.#afterDelta = `,"logprobs":null,"finish_reason":null${this.#tail}`;
    this.#textBegin = `${this.#begin}{"content":`;
    this.#textEnd = `}${this.#afterDelta}`;
    this.#usageBegin = wantsUsage ? `data: ${head},"choices":[],"usage":` : undefined;
    this.#older = isOlder(request);
  }

  take(): string {
    const out = this.#out;
    this.#out = "";
    return out;
  }

  ending(usage: ReplyUsage): string {
    const rest = this.take();
    const last = this.#usageBegin === undefined ? "" : `${this.#usageBegin}${JSON.stringify(usageObject(usage))}}\n\n`;
    return `${rest}${last}${endEvent}`;
  }

  block(): void {
    this.#thought = { pieces: [], isSummary: false };
  }

  text(text: string, logprobs?: readonly unknown[]): void {
    if (!this.#begun) this.#first('""');
    if (this.#thought.pieces.length > 0) this.block();
    if (logprobs && logprobs.length > 0) this.#textWithLogprobs(text, logprobs);
    else if (text !== "") this.#out += this.#textBegin + JSON.stringify(text) + this.#textEnd;
  }

  refusal(text: string): void {
    this.#refused = true;
    this.block();
    this.#delta({ refusal: text });
  }

  reasoning(text: string, isSummary: boolean): void {
    if (text === "") return;
    // Each block of reasoning becomes a paragraph, in the same way as in the whole answer.
    const goesOn = this.#thought.pieces.length > 0 && this.#thought.isSummary === isSummary;
    if (!goesOn) this.#thought = { pieces: [], isSummary };
    const parting = !goesOn && this.#thoughts++ > 0 ? "\n\n" : "";
    this.#thought.pieces.push(text);
    this.#delta({ reasoning_content: parting + text });
  }

  proof(proof: ReasoningProof): void {
    const { pieces, isSummary } = this.#thought;
    const details = detailsOf({ text: pieces.join(""), isSummary, proof }, this.#details);
    this.#details += details.length;
    this.#delta({ reasoning_details: details });
    this.block();
  }

  call(index: number, { callId, kind, name }: ReplyCall): void {
    this.block();
    const position = this.#calls.size;
    this.#calls.set(index, { position, kind, isEmpty: true });
    if (this.#older) {
      if (position === 0) this.#delta({ function_call: { name, arguments: "" } });
      return;
    }
    const called = kind === "custom" ? { custom: { name, input: "" } } : { function: { name, arguments: "" } };
    this.#delta({ tool_calls: [{ index: position, id: callId, type: kind, ...called }] });
  }

  arguments(index: number, text: string): void {
    const call = this.#calls.get(index);
    if (!call || text === "") return;
    call.isEmpty = false;
    if (this.#older) {
      if (call.position === 0) this.#delta({ function_call: { arguments: text } });
      return;
    }
    const called = call.kind === "custom" ? { custom: { input: text } } : { function: { arguments: text } };
    this.#delta({ tool_calls: [{ index: call.position, ...called }] });
  }

  usage(): void {
    // Figures before the end are ignored, because the final usage is sent at the end of the stream.
  }

  end({ reason, mark }: ReplyEnd): void {
    if (!this.#begun) this.#first('""');
    // Clients parse the arguments, and an empty text is no valid JSON.
    for (const [index, { kind, isEmpty }] of this.#calls)
      if (isEmpty && kind === "function") this.arguments(index, "{}");
    const finish = finishReason(reason, { refused: this.#refused, older: this.#older });
    const tail = mark ? this.#tail.replace(/\}\n\n$/, `,"headrace":${JSON.stringify(mark)}}\n\n`) : this.#tail;
    this.#out += `${this.#begin}{},"logprobs":null,"finish_reason":"${finish}"${tail}`;
  }

  #first(content: string): void {
    this.#begun = true;
    this.#out += `${this.#begin}{"role":"assistant","content":${content}}${this.#afterDelta}`;
  }

  #delta(delta: Json): void {
    if (!this.#begun) this.#first("null");
    this.#out += this.#begin + JSON.stringify(delta) + this.#afterDelta;
  }

  #textWithLogprobs(text: string, content: readonly unknown[]): void {
    const logprobs = JSON.stringify({ content, refusal: null });
    this.#out += `${this.#textBegin}${JSON.stringify(text)}},"logprobs":${logprobs},"finish_reason":null${this.#tail}`;
  }
}

function messageOf(parts: readonly AnswerPart[], older: boolean): Json {
  const texts: string[] = [];
  const refusals: string[] = [];
  const thoughts: ReasoningPart[] = [];
  const calls: CallPart[] = [];
  for (const part of parts) {
    if (part.type === "text") texts.push(part.text);
    else if (part.type === "refusal") refusals.push(part.text);
    else if (part.type === "reasoning") thoughts.push(part);
    else calls.push(part);
  }
  const [first] = calls;
  return {
    role: "assistant",
    content: texts.length === 0 && parts.length > 0 ? null : texts.join(""),
    refusal: refusals.length === 0 ? null : refusals.join(""),
    ...reasoningMembers(thoughts, reasoningNames),
    ...(older && first ? { function_call: { name: first.name, arguments: first.input || "{}" } } : {}),
    ...(older || !first ? {} : { tool_calls: calls.map(callOf) }),
  };
}

function callOf({ callId, kind, name, input }: CallPart): Json {
  if (kind === "custom") return { id: callId, type: kind, custom: { name, input } };
  return { id: callId, type: kind, function: { name, arguments: input || "{}" } };
}

function finishReason(reason: ReplyEnd["reason"], { refused, older }: { refused: boolean; older: boolean }): string {
  switch (reason) {
    case "calls":
      return older ? "function_call" : "tool_calls";
    case "length":
    case "context":
      return "length";
    case "filter":
      return "content_filter";
    case "refusal":
      // If a refusal has text, the answer ends like any other. Without text, it ends as `content_filter`, because the
      // client would otherwise see an empty answer.
      return refused ? "stop" : "content_filter";
    default:
      return "stop";
  }
}

/** Returns the gateway's error type for the status of an error that interrupts the answer. */
function typeOf(status: number): string {
  if (status === 429) return "rate_limit_error";
  if (status === 503) return "overloaded_error";
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  return status < 500 ? "invalid_request_error" : "api_error";
}
