// Puts the pieces of a body together as they come, on somebody's account.

import type { GatewayError } from "../errors.ts";
import type { HeldKind, MemoryAccount } from "./buffered-bytes.ts";
import { ByteSpan, noBytes } from "./byte-span.ts";
import { freeBytes } from "./free-bytes.ts";

const minBlockBytes = 16 * 1024;
/** Room that is taken at once, and may be more than came. */
export const mostBlockBytes = 1024 * 1024;

/** What is held is given back by `release`. */
export class ByteCollector {
  /** Bytes that came. */
  length: number;
  readonly #kind: HeldKind;
  readonly #memoryAccount: MemoryAccount;
  #first: ByteSpan;
  /** A piece may be a small part of what was received along with it: all that follow are copied, into these. */
  #blocks: Buffer[] | undefined;
  /** Bytes of the last block that are in use. */
  #usedBytes = 0;
  #countedBytes: number;

  /** `first`: which its memoryAccount has counted already; it stays in the memory of whoever received it. */
  constructor(kind: HeldKind, memoryAccount: MemoryAccount, first: ByteSpan) {
    this.#kind = kind;
    this.#memoryAccount = memoryAccount;
    // It may be a small part of what was received along with it.
    this.#first = first.buffer.buffer.byteLength > 2 * first.length ? ByteSpan.of(Buffer.from(first.view)) : first;
    this.length = first.length;
    this.#countedBytes = first.length;
  }

  /** Gives the refusal where its memoryAccount may hold no more: then it is of no use any more. */
  add(piece: ByteSpan): GatewayError | undefined {
    this.length += piece.length;
    let start = piece.start;
    while (start < piece.end) {
      const block = this.#blocks?.at(-1);
      if (!block || this.#usedBytes === block.length) {
        const refusal = this.#addBlock(piece.end - start);
        if (refusal) return refusal;
        continue;
      }
      const copied = piece.buffer.copy(block, this.#usedBytes, start, piece.end);
      this.#usedBytes += copied;
      start += copied;
    }
    return undefined;
  }

  /** All of it; held until `release`. */
  joined(): ByteSpan {
    const first = this.#first;
    const blocks = this.#blocks;
    if (!blocks) return first;
    const all = Buffer.allocUnsafeSlow(this.length);
    first.copyTo(all, 0);
    let at = first.length;
    for (const block of blocks) at += block.copy(all, at, 0, Math.min(block.length, this.length - at));
    this.#freeBlocks();
    return ByteSpan.of(all);
  }

  release(): void {
    this.#first = noBytes;
    this.#freeBlocks();
    this.#memoryAccount.release(this.#kind, this.#countedBytes);
    this.#countedBytes = 0;
  }

  /** They were shown to nobody. */
  #freeBlocks(): void {
    for (const block of this.#blocks ?? []) freeBytes(block);
    this.#blocks = undefined;
  }

  /** Blocks grow with what is held already: a short body has little that is not used. */
  #addBlock(neededBytes: number): GatewayError | undefined {
    const bytes = Math.min(Math.max(neededBytes, this.length, minBlockBytes), mostBlockBytes);
    const refusal = this.#memoryAccount.take(this.#kind, bytes);
    if (refusal) return refusal;
    this.#countedBytes += bytes;
    this.#blocks ??= [];
    this.#blocks.push(Buffer.allocUnsafeSlow(bytes));
    this.#usedBytes = 0;
    return undefined;
  }
}
