// Puts the blocks of an answer one after the other. A model server may interleave the arguments of several calls.
import type { Seal } from "../../../domain/seal.ts";
import type { ReplyCall } from "../conversation/reply.ts";
import type { BlockOutput } from "./block-output.ts";
import { isObject, type Json, parsed } from "./json.ts";

interface Block {
  readonly kind: "text" | "thinking" | "redacted" | "call";
  readonly start: Json;
  /** Index of the call in the model server's answer. Undefined for other blocks. */
  readonly index: number | undefined;
  /**
   * Pieces that have arrived but are not written yet. A call keeps all its pieces until it is known whether its
   * arguments are complete.
   */
  pieces: string[];
  /** The signature, if this is a thinking block. */
  signature: string | undefined;
  /** True if more pieces of this call may follow although another block has begun. */
  isUnfinished: boolean;
}

/**
 * Writes the first open block while it arrives, and lets later blocks wait. A text ends when another block begins. A
 * call also ends then if its arguments are a complete object. Later pieces of such a call are dropped, because they
 * could only spoil it. Any other call ends with the answer, and later blocks wait until then.
 */
export class BlockQueue {
  readonly #out: BlockOutput;
  readonly #seal: Seal;
  readonly #omitsThinking: boolean;
  /** The block that is being written now. */
  #live: Block | undefined;
  readonly #waiting: Block[] = [];
  readonly #calls = new Map<number, Block>();
  #startsAnew = false;

  constructor(out: BlockOutput, seal: Seal, omitsThinking: boolean) {
    this.#out = out;
    this.#seal = seal;
    this.#omitsThinking = omitsThinking;
  }

  startAnew(): void {
    this.#startsAnew = true;
  }

  /** True in the common case that the answer is a single text, which is written piece by piece. */
  get isInText(): boolean {
    return this.#live?.kind === "text" && this.#waiting.length === 0 && !this.#startsAnew;
  }

  text(text: string): void {
    if (this.isInText) this.#out.delta("text", text);
    // Anthropic leaves `citations` out of a text that has none. AI SDK 6 and earlier versions refuse a null there.
    else this.#add(this.#blockFor("text", { type: "text", text: "" }), text);
  }

  thinking(text: string): void {
    this.#add(this.#blockFor("thinking", emptyThinking), text);
  }

  /** Ends the thinking block with its signature. If `signature` is undefined, the gateway signs the block itself. */
  signature(signature: string | undefined): void {
    this.#blockFor("thinking", emptyThinking).signature = signature;
    this.#startsAnew = true;
  }

  redacted(data: string): void {
    this.#startsAnew = true;
    this.#blockFor("redacted", { type: "redacted_thinking", data });
    this.#startsAnew = true;
  }

  call(index: number, { callId, name }: ReplyCall): void {
    const start = { type: "tool_use", id: callId, name, input: {}, caller: { type: "direct" } };
    this.#startsAnew = true;
    this.#calls.set(index, this.#blockFor("call", start, index));
  }

  arguments(index: number, text: string): void {
    const block = this.#calls.get(index);
    if (block) this.#add(block, text);
  }

  end(): void {
    this.#closeLive();
    for (const block of this.#waiting.splice(0)) {
      this.#begin(block);
      this.#closeLive();
    }
    this.#calls.clear();
  }

  #blockFor(kind: Block["kind"], start: Json, index?: number): Block {
    const last = this.#waiting.at(-1) ?? this.#live;
    if (last?.kind === kind && !this.#startsAnew) return last;
    this.#startsAnew = false;
    const block: Block = { kind, start, index, pieces: [], signature: undefined, isUnfinished: false };
    if (this.#live && !this.#live.isUnfinished && isOver(this.#live)) this.#closeLive();
    if (this.#live === undefined) {
      this.#begin(block);
    } else {
      this.#live.isUnfinished = true;
      // The arguments have been checked and written, so their pieces are no longer needed.
      this.#live.pieces = [];
      this.#waiting.push(block);
    }
    return block;
  }

  #add(block: Block, text: string): void {
    const isLive = block === this.#live;
    const isHeld = block.kind === "thinking" && this.#omitsThinking;
    if (isLive && !isHeld) this.#write(block, text);
    if (!isLive || isHeld || (block.kind === "call" && !block.isUnfinished)) block.pieces.push(text);
  }

  #write({ kind }: Block, text: string): void {
    if (kind !== "redacted") this.#out.delta(kind, text);
  }

  #begin(block: Block): void {
    this.#live = block;
    this.#out.start(block.start);
    if (block.pieces.length > 0 && !(block.kind === "thinking" && this.#omitsThinking)) {
      this.#write(block, block.pieces.join(""));
    }
  }

  /** A thinking block always ends with a signature, because Claude Code gives up an answer whose thinking has none. */
  #closeLive(): void {
    const block = this.#live;
    if (!block) return;
    if (block.kind === "thinking") {
      const kept = this.#omitsThinking ? block.pieces.join("") : "";
      this.#out.delta("signature", block.signature ?? this.#seal.seal(kept));
    }
    this.#out.stop();
    if (block.index !== undefined) this.#calls.delete(block.index);
    this.#live = undefined;
  }
}

const emptyThinking = { type: "thinking", thinking: "", signature: "" };

/**
 * The text `{}` does not count as complete, because some servers send it as a placeholder before the real arguments.
 */
function isOver({ kind, pieces }: Block): boolean {
  if (kind !== "call") return true;
  const text = pieces.join("");
  const value = text.trimEnd().endsWith("}") ? parsed(text) : undefined;
  return isObject(value) && Object.keys(value).length > 0;
}
