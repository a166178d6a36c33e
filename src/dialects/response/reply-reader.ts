// Reads the answers of a model server that speaks Responses.
import { GatewayError } from "../../base/errors.ts";
import { ClientCalls } from "../conversation/call-names.ts";
import type { CallNames } from "../conversation/conversation.ts";
import type { EngineWords } from "../conversation/format.ts";
import type { ReplyReader, ReplySink } from "../conversation/reply.ts";
import { publicFault } from "../engine-fault.ts";
import { isObject, type Json, numberOf, objectsOf, textOf } from "./json.ts";

export class ResponseReader implements ReplyReader {
  readonly #names: CallNames;
  readonly #engine: EngineWords | undefined;
  #sink: ClientCalls | undefined;
  /** Parts of items that were told piece by piece: what comes of them whole is known. */
  readonly #told = new Set<string>();
  /** Items that were begun, and those that were told to their end, by their place. */
  readonly #begun = new Set<unknown>();
  readonly #ended = new Set<unknown>();
  #hasCalls = false;

  /** `engine`: keeps secrets out of its words, which do not reach the client without it. */
  constructor(names: CallNames, engine?: EngineWords) {
    this.#names = names;
    this.#engine = engine;
  }

  event(data: Json, to: ReplySink): void {
    this.#sink ??= new ClientCalls(to, this.#names);
    const sink = this.#sink;
    const { type, delta, output_index: index } = data;
    if (typeof delta === "string") {
      this.#told.add(partKey(index, data));
      this.#delta(String(type), delta, data, sink);
    } else if (type === "response.output_item.added" && isObject(data["item"])) this.#added(data["item"], index, sink);
    else if (type === "response.output_item.done" && isObject(data["item"])) this.#done(data["item"], index, sink);
    else if (type === "response.reasoning_summary_part.added" && numberOf(data["summary_index"]) !== 0) {
      sink.reasoning("\n\n", true);
    } else if (type === "response.completed" || type === "response.incomplete" || type === "response.failed") {
      const response = isObject(data["response"]) ? data["response"] : {};
      this.#end({ ...response, status: type.slice("response.".length) }, sink);
    }
  }

  whole(answer: Json, to: ReplySink): void {
    this.#end(answer, new ClientCalls(to, this.#names));
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
    if (this.#begun.has(index)) return;
    this.#begun.add(index);
    const { type } = item;
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

  /** Some servers tell an item only once it is whole, and some only at the end of the answer. */
  #done(item: Json, index: unknown, sink: ReplySink): void {
    if (this.#ended.has(index)) return;
    this.#added(item, index, sink);
    this.#ended.add(index);
    this.#tellRest(item, numberOf(index) ?? 0, sink);
    const sealed = textOf(item["encrypted_content"]);
    if (item["type"] === "reasoning" && sealed !== undefined && sealed !== "")
      sink.proof({ kind: "encrypted", data: sealed });
  }

  /** What was not told piece by piece. */
  #tellRest(item: Json, index: number, sink: ReplySink): void {
    const { type, content, summary } = item;
    const isNew = (part: Json) => !this.#told.has(partKey(index, part));
    const input = textOf(item["arguments"]) ?? textOf(item["input"]);
    if (type === "function_call" || type === "custom_tool_call") {
      if (input !== undefined && isNew({})) sink.arguments(index, input);
      return;
    }
    if (type === "reasoning") {
      const [raw, summaries] = [objectsOf(content), objectsOf(summary)];
      const texts = (raw.length > 0 ? raw : summaries).map((part) => textOf(part["text"]) ?? "");
      const isTold = [...raw.keys(), ...summaries.keys()].some(
        (at) => !isNew({ content_index: at }) || !isNew({ summary_index: at }),
      );
      if (texts.length > 0 && !isTold) sink.reasoning(texts.join("\n\n"), raw.length === 0);
      return;
    }
    if (type !== "message") return;
    for (const [at, part] of objectsOf(content).entries()) {
      if (!isNew({ content_index: at })) continue;
      const [text, refusal, logprobs] = [textOf(part["text"]), textOf(part["refusal"]), part["logprobs"]];
      if (text !== undefined) sink.text(text, Array.isArray(logprobs) && logprobs.length > 0 ? logprobs : undefined);
      else if (refusal !== undefined) sink.refusal(refusal);
    }
  }

  #end(response: Json, sink: ReplySink): void {
    for (const [index, item] of objectsOf(response["output"]).entries()) this.#done(item, index, sink);
    const { status, usage, incomplete_details: details, error } = response;
    if (status === "failed" || status === "cancelled") {
      const { message, ...fault } = this.#engine ? publicFault(JSON.stringify({ error }), this.#engine) : {};
      throw new GatewayError(
        "upstream_error",
        message ?? "The model server failed in the middle of the answer.",
        fault,
      );
    }
    if (isObject(usage)) sink.usage(usageOf(usage));
    const reason = isObject(details) ? details["reason"] : undefined;
    if (status === "incomplete") sink.end({ reason: reason === "content_filter" ? "filter" : "length" });
    else sink.end({ reason: this.#hasCalls ? "calls" : "stop" });
  }
}

/** One part of one item: items of other kinds have one alone. */
function partKey(index: unknown, { content_index: content, summary_index: summary }: Json): string {
  return `${String(index)} ${String(content ?? "")} ${String(summary ?? "")}`;
}

function usageOf(usage: Json) {
  const { input_tokens_details: input, output_tokens_details: output } = usage;
  return {
    promptTokens: numberOf(usage["input_tokens"]),
    completionTokens: numberOf(usage["output_tokens"]),
    cachedTokens: isObject(input) ? numberOf(input["cached_tokens"]) : undefined,
    cacheWriteTokens: isObject(input) ? numberOf(input["cache_write_tokens"]) : undefined,
    reasoningTokens: isObject(output) ? numberOf(output["reasoning_tokens"]) : undefined,
  };
}
