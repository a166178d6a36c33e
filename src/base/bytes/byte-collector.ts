// Joins the pieces of a body as they arrive, and counts them on an account.

import type { GatewayError } from "../errors.ts";
import type { HeldKind, MemoryAccount } from "./buffered-bytes.ts";
import { ByteSpan, noBytes } from "./byte-span.ts";
import { freeBytes } from "./free-bytes.ts";

const minBlockBytes = 16 * 1024;
/** The most room that is taken at once, before the bytes arrive. */
export const mostBlockBytes = 1024 * 1024;

/** `release` frees the bytes held. */
export class ByteCollector {
  /** The number of bytes that arrived. */
  length: number;
  readonly #kind: HeldKind;
  readonly #memoryAccount: MemoryAccount;
  #first: ByteSpan;
  /** A piece may be a small part of a larger buffer. Every piece after the first is copied into these blocks. */
  #blocks: Buffer[] | undefined;
  /** The used bytes of the last block. */
  #usedBytes = 0;
  #countedBytes: number;

  /** `first` is counted by its memory account already and stays in the receiver's memory. */
  constructor(kind: HeldKind, memoryAccount: MemoryAccount, first: ByteSpan) {
    this.#kind = kind;
    this.#memoryAccount = memoryAccount;
    // The piece may be a small part of a larger buffer.
    this.#first = first.buffer.buffer.byteLength > 2 * first.length ? ByteSpan.of(Buffer.from(first.view)) : first;
    this.length = first.length;
    this.#countedBytes = first.length;
  }

  /** Returns the refusal if the memory account may hold no more. The collector is then useless. */
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

  /** Returns all bytes, which are held until `release`. */
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

  /** No other code has seen these blocks. */
  #freeBlocks(): void {
    for (const block of this.#blocks ?? []) freeBytes(block);
    this.#blocks = undefined;
  }

  /** Blocks grow with what is held already, so that a short body wastes little. */
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
