// Reads the answers of a model server that uses the Responses API.
import type { GatewayError } from "../../../base/errors.ts";
import { ClientCalls } from "../conversation/call-names.ts";
import type { CallNames } from "../conversation/conversation.ts";
import type { EngineWords } from "../conversation/format.ts";
import type { ReplyReader, ReplySink, ReplyUsage } from "../conversation/reply.ts";
import { reportedFault } from "../engine-fault.ts";
import { malformed } from "../malformed.ts";
import { billedOf, countOf, detailsOf, servedOf } from "../reported-parts.ts";
import { isObject, type Json, numberOf, objectsOf, textOf } from "./json.ts";

export class ResponseReader implements ReplyReader {
  readonly #names: CallNames;
  readonly #engine: EngineWords | undefined;
  #sink: ClientCalls | undefined;
  /**
   * The id of each item that has begun, by the item's index. The second member holds the indices of items whose text
   * arrived in pieces, so that no text of the complete item is added.
   */
  readonly #begun = new Map<number, unknown>();
  readonly #withText = new Set<number>();
  /** Indices of items without deltas: their texts arrived only in the events that end a text. */
  readonly #withTextAtEnd = new Set<number>();
  /** Indices for which the last item is complete. */
  readonly #over = new Set<number>();
  readonly #callIds = new Set<string>();
  #itemCount = 0;
  #hasCalls = false;
  #hasRefusal = false;
  isOver = false;

  /**
   * `engine` removes secrets from the server's error messages. Without `engine`, the client does not get these
   * messages.
   */
  constructor(names: CallNames, engine?: EngineWords) {
    this.#names = names;
    this.#engine = engine;
  }

  event(data: Json, to: ReplySink): void {
    this.#sink ??= new ClientCalls(to, this.#names);
    const sink = this.#sink;
    const { type, delta, item } = data;
    const index = this.#indexOf(data);
    if (type === "error") throw this.#fault(data);
    // Events that follow the end of the answer are ignored.
    if (this.isOver) return;
    if (typeof delta === "string") {
      // If a call has not begun, its name is not known yet. The complete item will contain the whole call.
      if (type === "response.function_call_arguments.delta" && !this.#begun.has(index)) return;
      if (delta !== "") this.#withText.add(index);
      this.#withTextAtEnd.delete(index);
      this.#delta(String(type), delta, index, data, sink);
    } else if (type === "response.output_item.added" && isObject(item)) this.#added(item, index, sink);
    else if (type === "response.output_item.done" && isObject(item)) this.#done(item, index, sink);
    else if (type === "response.content_part.added") this.#partAdded(data, sink);
    else if (typeof type === "string" && type in wholeTexts) this.#sendAtEnd(type, index, data, sink);
    else if (type === "response.reasoning_summary_part.added" && isLater(data["summary_index"])) {
      sink.reasoning(parting, true);
    } else if (type === "response.completed" || type === "response.incomplete" || type === "response.failed") {
      const { response } = data;
      if (!isObject(response)) throw malformed("an event without its response");
      this.#finishItems(response, sink);
      this.#end(response, type, sink);
    } else if (typeof type !== "string") throw malformed("an event without a type");
  }

  isPart({ type }: Json): boolean {
    return typeof type === "string" && type.startsWith("response.");
  }

  whole(answer: Json, to: ReplySink): void {
    const sink = new ClientCalls(to, this.#names);
    const { output, status } = answer;
    if (!Array.isArray(output)) throw malformed("a response without output");
    if (status === "queued" || status === "in_progress") throw malformed("a response that is not finished");
    for (const [index, item] of objectsOf(output).entries()) this.#done(item, index, sink);
    this.#end(answer, undefined, sink);
  }

  /** Reads the items that the stream left out. Some servers send all items only in the last event. */
  #finishItems({ output }: Json, sink: ReplySink): void {
    const items = objectsOf(output);
    // In the last event, an item may have another id than before. Items therefore count as left out only if the event
    // has more items than have begun.
    const areMore = items.length > this.#itemCount;
    const areIndexesTrue = !areMore && this.#begun.size === this.#itemCount;
    const hasBareText = this.#itemCount === 0 && this.#withText.size > 0;
    for (const [position, item] of items.entries()) {
      const index = this.#begunIndex(idOf(item)) ?? (areIndexesTrue ? position : undefined);
      if (index !== undefined && this.#begun.has(index)) {
        if (!this.#over.has(index)) this.#done(item, index, sink);
      } else if (areMore && !this.#begun.has(position) && (!hasBareText || isCall(item))) {
        this.#done(item, position, sink);
      }
    }
  }

  /**
   * Returns the index of an event's item. If the event has no index, as with llama-server, the item is found by its id.
   * If its id is unknown, an item that begins is a new one, and any other event belongs to the last item.
   */
  #indexOf({ type, item, item_id: itemId, output_index: index }: Json): number {
    const reported = numberOf(index);
    if (reported !== undefined) return reported;
    const known = this.#begunIndex(isObject(item) ? idOf(item) : itemId);
    if (known !== undefined) return known;
    return type === "response.output_item.added" ? this.#itemCount : Math.max(0, this.#itemCount - 1);
  }

  #begunIndex(id: unknown): number | undefined {
    if (id === undefined) return undefined;
    for (const [index, known] of this.#begun) if (known === id) return index;
    return undefined;
  }

  /**
   * Reads a text or arguments that arrived without deltas. The event that ends them contains the whole text or
   * arguments.
   */
  #sendAtEnd(type: string, index: number, data: Json, sink: ReplySink): void {
    const [delta, member] = wholeTexts[type] ?? [];
    const text = member && textOf(data[member]);
    if (!delta || !text || (this.#withText.has(index) && !this.#withTextAtEnd.has(index))) return;
    if (member === "arguments" && !this.#begun.has(index)) return;
    this.#withText.add(index);
    this.#withTextAtEnd.add(index);
    this.#delta(delta, text, index, data, sink);
  }

  /** Begins a new text for each part of a message. Begins a new paragraph for each part of reasoning. */
  #partAdded({ part, content_index: index }: Json, sink: ReplySink): void {
    if (!isLater(index)) return;
    if (isObject(part) && part["type"] === "reasoning_text") sink.reasoning(parting, false);
    else sink.block();
  }

  #delta(type: string, delta: string, index: number, data: Json, sink: ReplySink): void {
    switch (type) {
      case "response.output_text.delta": {
        const { logprobs } = data;
        sink.text(delta, Array.isArray(logprobs) && logprobs.length > 0 ? logprobs : undefined);
        break;
      }
      case "response.refusal.delta":
        this.#hasRefusal = true;
        sink.refusal(delta);
        break;
      case "response.reasoning_text.delta":
        sink.reasoning(delta, false);
        break;
      case "response.reasoning_summary_text.delta":
        sink.reasoning(delta, true);
        break;
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        sink.arguments(index, delta);
        break;
      default:
    }
  }

  #added(item: Json, index: number, sink: ReplySink): void {
    const { type } = item;
    const id = idOf(item);
    if (id !== undefined && this.#begun.get(index) === id) return;
    // Some servers give all items the same index. An item may therefore begin at an index that an earlier item had.
    if (this.#begun.has(index))
      for (const indexes of [this.#withText, this.#withTextAtEnd, this.#over]) indexes.delete(index);
    this.#begun.set(index, id);
    this.#itemCount++;
    if (type === "message" || type === "reasoning") sink.block();
    if (!isCall(item)) return;
    this.#hasCalls = true;
    sink.call(index, {
      callId: this.#callIdOf(item),
      kind: type === "custom_tool_call" ? "custom" : "function",
      name: textOf(item["name"]) ?? "",
      namespace: textOf(item["namespace"]),
      id: textOf(item["id"]),
    });
  }

  /** Returns an id that no other call of the answer has. Clients find the call of a result by its id. */
  #callIdOf({ call_id: reportedId, id }: Json): string {
    const own = textOf(reportedId) || textOf(id);
    const callId = own && !this.#callIds.has(own) ? own : `call_${crypto.randomUUID().replaceAll("-", "")}`;
    this.#callIds.add(callId);
    return callId;
  }

  #done(item: Json, index: number, sink: ReplySink): void {
    const isOther = this.#over.has(index) && this.#begun.get(index) !== idOf(item);
    if (isOther || !this.#begun.has(index)) this.#added(item, index, sink);
    if (this.#over.has(index)) return;
    this.#over.add(index);
    if (!this.#withText.has(index)) this.#sendWhole(item, index, sink);
    const sealed = textOf(item["encrypted_content"]);
    if (item["type"] === "reasoning" && sealed !== undefined && sealed !== "")
      sink.proof({ kind: "encrypted", data: sealed });
  }

  #sendWhole(item: Json, index: number, sink: ReplySink): void {
    const { type, content, summary } = item;
    if (isCall(item)) {
      const { arguments: values, input = values } = item;
      // Some servers send the arguments as an object instead of a text.
      const text = isObject(input) ? JSON.stringify(input) : textOf(input);
      if (text) sink.arguments(index, text);
      return;
    }
    if (type === "reasoning") {
      const [raw, summaries] = [objectsOf(content), objectsOf(summary)];
      const texts = (raw.length > 0 ? raw : summaries).map((part) => textOf(part["text"]) ?? "");
      if (texts.length > 0) sink.reasoning(texts.join(parting), raw.length === 0);
      return;
    }
    if (type !== "message") return;
    const parts = typeof content === "string" ? [{ text: content }] : objectsOf(content);
    for (const part of parts as readonly Json[]) {
      sink.block();
      const [text, refusal, logprobs] = [textOf(part["text"]), textOf(part["refusal"]), part["logprobs"]];
      if (text !== undefined) sink.text(text, Array.isArray(logprobs) && logprobs.length > 0 ? logprobs : undefined);
      else if (refusal) {
        this.#hasRefusal = true;
        sink.refusal(refusal);
      }
    }
  }

  /**
   * Ends the answer. `event` is the type of the last event. In some servers' answers, the status contradicts this type
   * or is missing.
   */
  #end(response: Json, event: unknown, sink: ReplySink): void {
    const { usage, incomplete_details: details, error } = response;
    const status = statusOf(response, event);
    const isFailed = status === "failed" || status === "cancelled";
    // The usage of a failed response counts too, because the vendor charges for it.
    const reported = usageOf(usage, response);
    if (reported) sink.usage(isFailed ? { ...reported, isFinal: true } : reported);
    if (isFailed) throw this.#fault({ error });
    this.isOver = true;
    const reason = isObject(details) ? details["reason"] : undefined;
    if (status === "incomplete") sink.end({ reason: reason === "content_filter" ? "filter" : "length" });
    else sink.end({ reason: this.#hasCalls ? "calls" : this.#hasRefusal ? "refusal" : "stop" });
  }

  #fault(data: Json): GatewayError {
    return reportedFault(JSON.stringify(data), this.#engine, "The model server failed in the middle of the answer.");
  }
}

/**
 * Types of events that end a text or arguments. Each has the type of its delta event, and the name of the member that
 * contains the whole text.
 */
const wholeTexts: Readonly<Record<string, readonly [delta: string, member: string]>> = {
  "response.output_text.done": ["response.output_text.delta", "text"],
  "response.refusal.done": ["response.refusal.delta", "refusal"],
  "response.function_call_arguments.done": ["response.function_call_arguments.delta", "arguments"],
};

function idOf(item: Json): unknown {
  return item["call_id"] ?? item["id"];
}

function isCall({ type }: Json): boolean {
  return type === "function_call" || type === "custom_tool_call";
}

/**
 * Returns the status of a response. `event` is the type of the stream's last event. Some servers report a status that
 * contradicts this type.
 */
export function statusOf({ status, incomplete_details: details }: Json, event: unknown): unknown {
  if (status === "failed" || status === "cancelled") return status;
  if (event === "response.failed") return "failed";
  if (event === "response.incomplete") return "incomplete";
  const isOpen = status === undefined || status === null || (event !== undefined && status !== "completed");
  if (!isOpen || status === "incomplete") return status;
  return isObject(details) && textOf(details["reason"]) ? "incomplete" : "completed";
}

/** The text between two parts of reasoning. */
const parting = "\n\n";

function isLater(index: unknown): boolean {
  return typeof index === "number" && index > 0;
}

/**
 * Reports whether an item is a web search that the vendor charges for. Items for pages that the model opened or
 * searched have the same type, but no charge.
 */
function isSearch({ type, action }: Json): boolean {
  return type === "web_search_call" && (!isObject(action) || (action["type"] ?? "search") === "search");
}

/**
 * Returns the reported usage, or undefined if there is none. The items of the output show which tools the model server
 * ran, and these are counted.
 */
export function usageOf(usage: unknown, { service_tier: tier, output: items }: Json): ReplyUsage | undefined {
  if (!isObject(usage)) return undefined;
  // SGLang's whole responses have the names of a chat completion (sgl-project/sglang#10012).
  const { input_tokens = usage["prompt_tokens"], output_tokens = usage["completion_tokens"] } = usage;
  const input = detailsIn(usage["input_tokens_details"] ?? usage["prompt_tokens_details"]);
  const output = detailsIn(usage["output_tokens_details"] ?? usage["completion_tokens_details"]);
  return {
    promptTokens: countOf(input_tokens),
    completionTokens: countOf(output_tokens),
    cachedTokens: countOf(input["cached_tokens"]),
    cacheWriteTokens: countOf(input["cache_write_tokens"]),
    reasoningTokens: countOf(output["reasoning_tokens"] ?? usage["reasoning_tokens"]),
    details: detailsOf({
      inputAudioTokens: countOf(input["audio_tokens"]),
      inputImageTokens: countOf(input["image_tokens"]),
      outputAudioTokens: countOf(output["audio_tokens"]),
      outputImageTokens: countOf(output["image_tokens"]),
      searches: items === undefined ? 0 : objectsOf(items).filter(isSearch).length,
      served: servedOf(tier),
      billedNanoUsd: billedOf(usage),
    }),
  };
}

const noDetails: Json = {};

function detailsIn(details: unknown): Json {
  return isObject(details) ? details : noDetails;
}
