// Reads the answers of model servers that use chat completions, both chunks of a stream and whole answers.
import { ClientCalls } from "../conversation/call-names.ts";
import type { CallNames } from "../conversation/conversation.ts";
import type { EngineWords } from "../conversation/format.ts";
import type { ReplyEnd, ReplyReader, ReplySink } from "../conversation/reply.ts";
import { hasFault, reportedFault } from "../engine-fault.ts";
import { malformed } from "../malformed.ts";
import { isObject, type Json, listOf, objectOf, textOf } from "./json-value.ts";
import { plainReasoning, reasoningDetails, sendReasoning, thinkingText, wholeReasoning } from "./reasoning.ts";
import { ReplyCalls } from "./reply-calls.ts";
import { readUsage } from "./reply-usage.ts";
import { failedMidway, requireNoFailure } from "./strict-choices.ts";

/** Finish reasons of OpenAI, and those of servers that use other words. */
const reasons: Readonly<Record<string, ReplyEnd["reason"]>> = {
  length: "length",
  max_tokens: "length",
  model_length: "context",
  tool_calls: "calls",
  function_call: "calls",
  tool_use: "calls",
  content_filter: "filter",
};
/** Finish reasons of an answer that was cut off or withheld. They are kept even if the answer contains calls. */
const cutReasons = new Set<ReplyEnd["reason"]>(["length", "context", "filter"]);

/** Reads one answer. Only its first choice is read, because a conversation has only one answer. */
export class ChatReplyReader implements ReplyReader {
  readonly #names: CallNames;
  readonly #engine: EngineWords | undefined;
  readonly #calls = new ReplyCalls();
  #given: ReplySink | undefined;
  #sink: ReplySink | undefined;
  #refused = false;
  #ended = false;
  isOver = false;
  /**
   * True if the plain text of the current reasoning has arrived in another member, so that the text in its details is a
   * repetition.
   */
  #plainThought = false;

  constructor(names: CallNames, engine: EngineWords | undefined) {
    this.#names = names;
    this.#engine = engine;
  }

  event(data: Json, given: ReplySink): void {
    const sink = this.#client(given);
    this.#refuseFault(data);
    const choice = firstChoice(data);
    readUsage(data, choice, sink);
    // A chunk that has only the usage is the last chunk.
    this.isOver = this.#ended && !choice && isObject(data["usage"]);
    // Chunks after the end are ignored. Some servers repeat the end, and further text would follow a complete answer.
    if (!choice || this.#ended) return;
    const { delta, message } = choice;
    // Some servers send a whole answer as the only chunk of their stream.
    if (isObject(delta)) this.#delta(delta, choice, sink);
    else if (isObject(message)) this.#message(message, choice, sink);
    const reason = textOf(choice["finish_reason"]);
    if (reason !== undefined) this.#end(reason, choice, sink);
  }

  isPart(data: Json): boolean {
    return firstChoice(data) !== undefined;
  }

  whole(answer: Json, given: ReplySink): void {
    const sink = this.#client(given);
    this.#refuseFault(answer);
    const choice = firstChoice(answer);
    const message = choice?.["message"];
    if (!choice || !isObject(message)) throw malformed("a chat completion without a message");
    this.#message(message, choice, sink);
    readUsage(answer, choice, sink);
    this.#end(textOf(choice["finish_reason"]) ?? "stop", choice, sink);
  }

  done(given: ReplySink): void {
    this.#end("stop", {}, this.#client(given));
  }

  plainText({ choices, usage, error, object, x_groq }: Json): string | undefined {
    if (this.#ended || isSet(usage) || isSet(error) || isSet(x_groq) || object === "error") return undefined;
    if (!Array.isArray(choices) || choices.length !== 1 || !isObject(choices[0])) return undefined;
    const { index = 0, delta, finish_reason, ...others } = choices[0];
    if (index !== 0 || isSet(finish_reason) || !isObject(delta)) return undefined;
    const { content, role: _, ...beside } = delta;
    if (typeof content !== "string" || content === "") return undefined;
    return [...Object.values(others), ...Object.values(beside)].some(isSet) ? undefined : content;
  }

  #client(given: ReplySink): ReplySink {
    if (this.#sink && this.#given === given) return this.#sink;
    this.#given = given;
    this.#sink = this.#names.size === 0 ? given : new ClientCalls(given, this.#names);
    return this.#sink;
  }

  #delta(delta: Json, choice: Json, sink: ReplySink): void {
    this.#reasoning(delta, sink);
    this.#content(delta, choice, sink);
    const { tool_calls: calls, function_call: older } = delta;
    if (Array.isArray(calls)) for (const call of calls) if (isObject(call)) this.#calls.add(call, sink);
    if (isObject(older)) this.#calls.addOlder(older, sink);
  }

  #message(message: Json, choice: Json, sink: ReplySink): void {
    for (const piece of wholeReasoning(message)) sendReasoning(piece, sink);
    this.#content(message, choice, sink);
    for (const call of listOf(message["tool_calls"])) if (isObject(call)) this.#calls.addWhole(call, sink);
    const older = message["function_call"];
    if (isObject(older)) this.#calls.addOlder(older, sink);
  }

  /**
   * Passes on the reasoning of a delta. The text in its details is only used if no plain-text member contains the same
   * text.
   */
  #reasoning(delta: Json, sink: ReplySink): void {
    const details = reasoningDetails(delta);
    const plain = plainReasoning(delta);
    if (plain !== undefined) {
      this.#plainThought = true;
      sink.reasoning(
        plain,
        details.some(({ isSummary }) => isSummary),
      );
    }
    for (const piece of details) {
      sendReasoning(this.#plainThought ? { ...piece, text: "" } : piece, sink);
      if (piece.proof) this.#plainThought = false;
    }
  }

  #content({ content, refusal }: Json, choice: Json, sink: ReplySink): void {
    const { logprobs } = choice;
    const entries = isObject(logprobs) ? listOf(logprobs["content"]) : [];
    if (typeof content === "string") {
      if (content !== "" || entries.length > 0) sink.text(content, entries.length > 0 ? entries : undefined);
    } else if (Array.isArray(content)) {
      for (const part of content) contentPart(objectOf(part), sink);
    }
    const refused = textOf(refusal);
    if (refused === undefined) return;
    this.#refused = true;
    sink.refusal(refused);
  }

  #end(reason: string, choice: Json, sink: ReplySink): void {
    if (this.#ended) return;
    requireNoFailure(choice, this.#engine);
    this.#ended = true;
    this.#calls.end(sink);
    sink.end(this.#endOf(reasons[reason.toLowerCase()] ?? "stop", choice));
  }

  #endOf(reason: ReplyEnd["reason"], choice: Json): ReplyEnd {
    if (cutReasons.has(reason)) return { reason };
    if (this.#calls.count > 0) return { reason: "calls" };
    if (this.#refused) return { reason: "refusal" };
    // vLLM and SGLang report the text that stopped the answer.
    const sequence = textOf(choice["stop_reason"]) ?? textOf(choice["matched_stop"]);
    return sequence === undefined ? { reason: "stop" } : { reason: "sequence", sequence };
  }

  #refuseFault(data: Json): void {
    if (!hasFault(data)) return;
    throw reportedFault(JSON.stringify(data), this.#engine, failedMidway);
  }
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);
}

/** Returns undefined for a chunk that has only usage, or only other choices. */
function firstChoice({ choices }: Json): Json | undefined {
  if (choices === undefined || choices === null) return undefined;
  if (!Array.isArray(choices)) throw malformed("choices that are no list");
  for (const choice of choices) {
    if (!isObject(choice)) throw malformed("a choice that is no object");
    if (Number(choice["index"] ?? 0) === 0) return choice;
  }
  return undefined;
}

/** Mistral sends reasoning as a part of the content. */
function contentPart(part: Json, sink: ReplySink): void {
  const { type } = part;
  if (type === "thinking") sendReasoning({ text: thinkingText(part["thinking"]), isSummary: false }, sink);
  if (type !== "text" && type !== undefined) return;
  const text = textOf(part["text"]);
  if (text !== undefined) sink.text(text);
}
