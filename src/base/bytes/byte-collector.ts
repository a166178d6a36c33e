// Joins the pieces of a body as they arrive, and counts them on an account.

import type { GatewayError } from "../errors.ts";
import type { BufferKind, MemoryAccount } from "./buffered-bytes.ts";
import { ByteSpan, noBytes } from "./byte-span.ts";
import { freeBytes } from "./free-bytes.ts";

const minBlockBytes = 16 * 1024;
/** Maximum bytes of a block that is allocated before its bytes arrive. */
export const mostBlockBytes = 1024 * 1024;

/** Holds the pieces of one body. Call `release` to free them and their reservation. */
export class ByteCollector {
  /** Number of bytes that have arrived. */
  length: number;
  readonly #kind: BufferKind;
  readonly #memoryAccount: MemoryAccount;
  #first: ByteSpan;
  /**
   * Blocks into which every piece after the first is copied, because a piece may be a small part of a larger buffer.
   */
  #blocks: Buffer[] | undefined;
  /** Number of bytes of the last block that are filled. */
  #usedBytes = 0;
  #countedBytes: number;

  /** `first` must already be counted on `memoryAccount`. */
  constructor(kind: BufferKind, memoryAccount: MemoryAccount, first: ByteSpan) {
    this.#kind = kind;
    this.#memoryAccount = memoryAccount;
    // A piece that is a small part of a larger buffer is copied, so that the buffer can be freed.
    this.#first = first.buffer.buffer.byteLength > 2 * first.length ? ByteSpan.of(Buffer.from(first.view)) : first;
    this.length = first.length;
    this.#countedBytes = first.length;
  }

  /** Adds a piece. Returns the refusal if the memory account is full. After a refusal, the collector is unusable. */
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

  /** Returns all bytes. They stay counted until `release`. */
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

  /** Frees the blocks immediately, because no other code refers to them. */
  #freeBlocks(): void {
    for (const block of this.#blocks ?? []) freeBytes(block);
    this.#blocks = undefined;
  }

  /**
   * Adds a block that is at least as long as all bytes so far, up to a maximum. So a short body wastes little memory.
   */
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
