// Reads the answers of a model server that speaks Responses.
import type { GatewayError } from "../../base/errors.ts";
import { ClientCalls } from "../conversation/call-names.ts";
import type { CallNames } from "../conversation/conversation.ts";
import type { EngineWords } from "../conversation/format.ts";
import type { ReplyReader, ReplySink, ReplyUsage } from "../conversation/reply.ts";
import { toldFault } from "../engine-fault.ts";
import { malformed } from "../malformed.ts";
import { billedOf, countOf, detailsOf, servedOf } from "../told-parts.ts";
import { isObject, type Json, numberOf, objectsOf, textOf } from "./json.ts";

export class ResponseReader implements ReplyReader {
  readonly #names: CallNames;
  readonly #engine: EngineWords | undefined;
  #sink: ClientCalls | undefined;
  /** Places of items that began, and of those that were told piece by piece: what comes of them whole is known. */
  readonly #begun = new Set<unknown>();
  readonly #told = new Set<unknown>();
  #hasCalls = false;
  #hasRefusal = false;
  #isOver = false;

  /** `engine`: keeps secrets out of its words, which do not reach the client without it. */
  constructor(names: CallNames, engine?: EngineWords) {
    this.#names = names;
    this.#engine = engine;
  }

  event(data: Json, to: ReplySink): void {
    this.#sink ??= new ClientCalls(to, this.#names);
    const sink = this.#sink;
    const { type, delta, item, output_index: index } = data;
    if (type === "error") throw this.#fault(data);
    // Nothing follows the end.
    if (this.#isOver) return;
    if (typeof delta === "string") {
      if (delta !== "") this.#told.add(index);
      this.#delta(String(type), delta, data, sink);
    } else if (type === "response.output_item.added" && isObject(item)) this.#added(item, index, sink);
    else if (type === "response.output_item.done" && isObject(item)) this.#done(item, index, sink);
    else if (type === "response.content_part.added") this.#partAdded(data, sink);
    else if (type === "response.reasoning_summary_part.added" && isLater(data["summary_index"])) {
      sink.reasoning(parting, true);
    } else if (type === "response.completed" || type === "response.incomplete" || type === "response.failed") {
      const { response } = data;
      if (!isObject(response)) throw malformed("an event without its response");
      // Some servers tell nothing before.
      if (this.#begun.size === 0) this.#items(response, sink);
      this.#end(response, sink);
    } else if (typeof type !== "string") throw malformed("an event without a type");
  }

  whole(answer: Json, to: ReplySink): void {
    const sink = new ClientCalls(to, this.#names);
    const { output, status } = answer;
    if (!Array.isArray(output)) throw malformed("a response without output");
    if (status === "queued" || status === "in_progress") throw malformed("a response that is not finished");
    this.#items(answer, sink);
    this.#end(answer, sink);
  }

  #items({ output }: Json, sink: ReplySink): void {
    for (const [index, item] of objectsOf(output).entries()) this.#done(item, index, sink);
  }

  /** Each part of a message is a text of its own; those of reasoning are paragraphs. */
  #partAdded({ part, content_index: index }: Json, sink: ReplySink): void {
    if (!isLater(index)) return;
    if (isObject(part) && part["type"] === "reasoning_text") sink.reasoning(parting, false);
    else sink.block();
  }

  #delta(type: string, delta: string, data: Json, sink: ReplySink): void {
    const index = numberOf(data["output_index"]) ?? 0;
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

  #added(item: Json, index: unknown, sink: ReplySink): void {
    const { type } = item;
    this.#begun.add(index);
    if (type === "message" || type === "reasoning") sink.block();
    if (type !== "function_call" && type !== "custom_tool_call") return;
    this.#hasCalls = true;
    sink.call(numberOf(index) ?? 0, {
      callId: textOf(item["call_id"]) ?? textOf(item["id"]) ?? "",
      kind: type === "custom_tool_call" ? "custom" : "function",
      name: textOf(item["name"]) ?? "",
      namespace: textOf(item["namespace"]),
      id: textOf(item["id"]),
    });
  }

  #done(item: Json, index: unknown, sink: ReplySink): void {
    if (!this.#begun.has(index)) this.#added(item, index, sink);
    if (!this.#told.has(index)) this.#tellWhole(item, numberOf(index) ?? 0, sink);
    const sealed = textOf(item["encrypted_content"]);
    if (item["type"] === "reasoning" && sealed !== undefined && sealed !== "")
      sink.proof({ kind: "encrypted", data: sealed });
  }

  #tellWhole(item: Json, index: number, sink: ReplySink): void {
    const { type, content, summary } = item;
    if (type === "function_call" || type === "custom_tool_call") {
      const { arguments: values, input = values } = item;
      // Some servers send the arguments as an object.
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
    for (const part of objectsOf(content)) {
      sink.block();
      const [text, refusal, logprobs] = [textOf(part["text"]), textOf(part["refusal"]), part["logprobs"]];
      if (text !== undefined) sink.text(text, Array.isArray(logprobs) && logprobs.length > 0 ? logprobs : undefined);
      else if (refusal) {
        this.#hasRefusal = true;
        sink.refusal(refusal);
      }
    }
  }

  #end(response: Json, sink: ReplySink): void {
    const { status, usage, incomplete_details: details, error } = response;
    const isFailed = status === "failed" || status === "cancelled";
    // What failed is charged for as well.
    const told = usageOf(usage, response);
    if (told) sink.usage(isFailed ? { ...told, isFinal: true } : told);
    if (isFailed) throw this.#fault({ error });
    this.#isOver = true;
    const reason = isObject(details) ? details["reason"] : undefined;
    if (status === "incomplete") sink.end({ reason: reason === "content_filter" ? "filter" : "length" });
    else sink.end({ reason: this.#hasCalls ? "calls" : this.#hasRefusal ? "refusal" : "stop" });
  }

  #fault(data: Json): GatewayError {
    return toldFault(JSON.stringify(data), this.#engine, "The model server failed in the middle of the answer.");
  }
}

/** Between parts of what was thought. */
const parting = "\n\n";

function isLater(index: unknown): boolean {
  return typeof index === "number" && index > 0;
}

/** Pages that were opened or looked through are items of the same type, and are not charged for. */
function isSearch({ type, action }: Json): boolean {
  return type === "web_search_call" && (!isObject(action) || (action["type"] ?? "search") === "search");
}

/** Tools that the model server ran are items of its output. Undefined where no usage is told. */
export function usageOf(usage: unknown, { service_tier: tier, output: items }: Json): ReplyUsage | undefined {
  if (!isObject(usage)) return undefined;
  const input = detailsIn(usage["input_tokens_details"]);
  const output = detailsIn(usage["output_tokens_details"]);
  return {
    promptTokens: countOf(usage["input_tokens"]),
    completionTokens: countOf(usage["output_tokens"]),
    cachedTokens: countOf(input["cached_tokens"]),
    cacheWriteTokens: countOf(input["cache_write_tokens"]),
    reasoningTokens: countOf(output["reasoning_tokens"]),
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
