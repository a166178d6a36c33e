// Reads the answers, streamed or whole, of a server that uses the Messages API.
import type { GatewayError } from "../../../base/errors.ts";
import { ClientCalls } from "../conversation/call-names.ts";
import type { CallNames } from "../conversation/conversation.ts";
import type { EngineWords } from "../conversation/format.ts";
import type { ReplyReader, ReplySink } from "../conversation/reply.ts";
import { reportedFault } from "../engine-fault.ts";
import { malformed } from "../malformed.ts";
import { countOf } from "../reported-parts.ts";
import { isObject, type Json, objectOf, textOf } from "./json.ts";
import { endOf } from "./stop-reasons.ts";
import { blocksOf, CallIds, inputPiece, strictBlock } from "./strict-block.ts";
import { UsageReading } from "./usage.ts";

/** A block that has begun and may continue. */
interface OpenBlock {
  readonly type: string;
  readonly id: unknown;
  /** Index of the call, if this block is a call. */
  readonly call: number;
  /** The input in the start event of a call. This input is used if no pieces arrive before the call ends. */
  readonly input: unknown;
  hasArguments: boolean;
  signature: string;
}

/**
 * Reads one answer. Calls and results of tools that run at the server are left out, because the text already reflects
 * them. `engine` removes its own credentials from errors. Without `engine`, only the kind of an error is reported.
 */
export class MessageReader implements ReplyReader {
  readonly #names: CallNames;
  readonly #engine: EngineWords | undefined;
  readonly #blocks = new Map<number, OpenBlock>();
  readonly #usage = new UsageReading();
  #sink: { readonly given: ReplySink; readonly calls: ReplySink } | undefined;
  readonly #ids = new CallIds();
  #calls = 0;
  /**
   * The content in the start event of the message. This content is used if no blocks arrive before the message ends.
   */
  #firstContent: unknown;
  #hasBlocks = false;
  /**
   * True for Claude, which shows only summaries of its thinking. Other models that answer in this format show the
   * thinking itself.
   */
  #isSummary = false;
  /** True after the model server has reported the stop reason. */
  #hasEnded = false;
  isOver = false;

  constructor(names: CallNames, engine?: EngineWords) {
    this.#names = names;
    this.#engine = engine;
  }

  event(data: Json, sink: ReplySink): void {
    const given = this.#sinkFor(sink);
    switch (data["type"]) {
      case "message_start":
        this.#begin(objectOf(data["message"]), given);
        this.#firstContent ??= objectOf(data["message"])["content"];
        break;
      case "content_block_start":
        this.#start(indexOf(data), blockOf(data["content_block"]), given);
        break;
      case "content_block_delta":
        this.#delta(this.#blockAt(indexOf(data), objectOf(data["delta"]), given), objectOf(data["delta"]), given);
        break;
      case "content_block_stop":
        this.#stop(indexOf(data), given);
        break;
      case "message_delta":
        if (isObject(data["usage"])) given.usage(this.#usage.add(data["usage"]));
        this.#end(isObject(data["delta"]) ? data["delta"] : data, given);
        break;
      case "message_stop":
        this.#close(given);
        this.isOver = true;
        break;
      case "error":
        throw this.#fault(data);
      default:
        if (typeof data["type"] !== "string") throw malformed("an event without a type");
    }
  }

  isPart({ type }: Json): boolean {
    return typeof type === "string" && parts.test(type);
  }

  whole(answer: Json, sink: ReplySink): void {
    const given = this.#sinkFor(sink);
    if (answer["type"] === "error") throw this.#fault(answer);
    const content = blocksOf(answer["content"]);
    if (!content) throw malformed("a message without content");
    this.#begin(answer, given);
    this.#sendBlocks(content, given);
    this.#end(answer, given);
    this.#close(given);
  }

  #sendBlocks(blocks: readonly unknown[], sink: ReplySink): void {
    for (const [index, block] of blocks.entries()) {
      this.#start(index, blockOf(block), sink);
      this.#stop(index, sink);
    }
  }

  #sinkFor(sink: ReplySink): ReplySink {
    if (this.#names.size === 0) return sink;
    if (this.#sink?.given !== sink) this.#sink = { given: sink, calls: new ClientCalls(sink, this.#names) };
    return this.#sink.calls;
  }

  #begin({ model, usage }: Json, sink: ReplySink): void {
    this.#isSummary = typeof model === "string" && model.includes("claude");
    if (isObject(usage)) sink.usage(this.#usage.add(usage));
  }

  #start(index: number, begun: Json, sink: ReplySink): void {
    const type = textOf(begun["type"]) ?? "";
    const before = this.#blocks.get(index);
    if (before?.type === type && before.id === begun["id"]) return;
    this.#hasBlocks = true;
    const block = strictBlock(begun, this.#ids);
    const signature = textOf(block["signature"]) ?? "";
    const open = { type, id: begun["id"], call: this.#calls, input: block["input"], hasArguments: false, signature };
    this.#blocks.set(index, open);
    if (type === "text") {
      sink.block();
      this.#sendText(textOf(block["text"]), sink);
    } else if (type === "thinking") {
      sink.block();
      this.#sendThinking(textOf(block["thinking"]), sink);
    } else if (type === "redacted_thinking") {
      sink.block();
      sink.proof({ kind: "redacted", data: textOf(block["data"]) ?? "" });
    } else if (type === "tool_use") {
      const { id, name } = block;
      if (typeof name !== "string") throw malformed("a call without a name");
      sink.call(this.#calls++, { callId: String(id), kind: "function", name });
    }
  }

  #delta(block: OpenBlock, delta: Json, sink: ReplySink): void {
    if (block.type === "text") {
      this.#sendText(textOf(delta["text"]), sink);
    } else if (block.type === "tool_use") {
      const piece = inputPiece(delta["partial_json"]);
      if (!piece) return;
      block.hasArguments = true;
      sink.arguments(block.call, piece);
    } else if (block.type === "thinking") {
      this.#sendThinking(textOf(delta["thinking"]), sink);
      block.signature = textOf(delta["signature"]) ?? block.signature;
    }
  }

  /**
   * Ends a block. A call without pieces takes the input of its start event. If the tool takes no input, that input is
   * empty.
   */
  #stop(index: number, sink: ReplySink): void {
    const block = this.#blocks.get(index);
    if (!block) return;
    this.#blocks.delete(index);
    if (block.type === "thinking" && block.signature !== "") {
      sink.proof({ kind: "signature", data: block.signature });
    } else if (block.type === "tool_use" && !block.hasArguments) {
      sink.arguments(block.call, JSON.stringify(block.input ?? {}));
    }
  }

  #sendText(text: string | undefined, sink: ReplySink): void {
    if (text) sink.text(text);
  }

  #sendThinking(text: string | undefined, sink: ReplySink): void {
    if (text) sink.reasoning(text, this.#isSummary);
  }

  /** Ends the answer as soon as the stop reason arrives. Some servers send nothing after it and leave blocks open. */
  #end({ stop_reason, stop_sequence, stop_details }: Json, sink: ReplySink): void {
    const reason = textOf(stop_reason);
    if (!reason || this.#hasEnded) return;
    this.#hasEnded = true;
    if (!this.#hasBlocks) this.#sendBlocks(blocksOf(this.#firstContent) ?? [], sink);
    for (const index of this.#blocks.keys()) this.#stop(index, sink);
    const explanation = textOf(objectOf(stop_details)["explanation"]);
    if (reason === "refusal" && explanation) sink.refusal(explanation);
    const end = endOf(reason, textOf(stop_sequence));
    sink.end(end.reason === "stop" && this.#calls > 0 ? { reason: "calls" } : end);
  }

  #close(sink: ReplySink): void {
    this.#end({ stop_reason: this.#calls > 0 ? "tool_use" : "end_turn" }, sink);
  }

  /** Returns the open block to which a piece belongs. A text or thinking block may begin with its first piece. */
  #blockAt(index: number, delta: Json, sink: ReplySink): OpenBlock {
    const known = this.#blocks.get(index);
    if (known) return known;
    const block = begunBy(delta);
    if (!block) throw malformed("a piece of a block that did not begin");
    this.#start(index, block, sink);
    return this.#blockAt(index, delta, sink);
  }

  #fault(data: Json): GatewayError {
    const { type } = objectOf(data["error"]);
    const detail = `the model server told an error of the type ${textOf(type)?.slice(0, 64)}`;
    return reportedFault(
      JSON.stringify(data),
      this.#engine,
      "The model server failed in the middle of the answer.",
      detail,
    );
  }
}

const parts = /^(?:message_(?:start|delta|stop)|content_block_(?:start|delta|stop))$/;

function indexOf(data: Json): number {
  const index = countOf(data["index"]);
  if (index === undefined) throw malformed("an event of a block without its index");
  return index;
}

function blockOf(value: unknown): Json {
  if (!isObject(value) || typeof value["type"] !== "string") throw malformed("a block without a type");
  return value;
}

/**
 * Returns the block that begins with a piece. Returns undefined for a piece of a call, because the piece does not
 * contain the name of the tool.
 */
export function begunBy({ type }: Json): Json | undefined {
  if (type === "text_delta") return { type: "text", text: "" };
  const isThought = type === "thinking_delta" || type === "signature_delta";
  return isThought ? { type: "thinking", thinking: "", signature: "" } : undefined;
}
