// The bytes of an account's files. Reading the sum takes an index entry for each file, and SQLite blocks the thread
// that serves requests. So the sum of very many files is cached.

import { monotonicMs } from "../../../base/clock.ts";

/** The sum of an account's files, and their number. */
export interface FileSum {
  bytes: number;
  files: number;
}

/** Each file counts as at least this many bytes, because even an empty file uses a block of the disk and a row. */
export const minCountedBytes = 16_384;
/** The sum of an account with fewer files is not cached. */
const manyFiles = 10_000;
/**
 * A sum is cached for one millisecond per this number of files, which is a hundred times as long as reading it takes.
 */
const filesPerMs = 64;
/**
 * If the cached sum leaves no room, it is read again after this share of the caching time, because files may have been
 * deleted.
 */
const fullPart = 1 / 10;

export class AccountBytes {
  readonly #nowMs: () => number;
  readonly #known = new Map<string, FileSum & { readAtMs: number }>();

  constructor(nowMs = monotonicMs) {
    this.#nowMs = nowMs;
  }

  /** Reports whether the account has room for this many more bytes. If so, counts them until the sum is read again. */
  async take(accountId: string, bytes: number, maxBytes: number, read: () => Promise<FileSum>): Promise<boolean> {
    const known = this.#known.get(accountId);
    const keepMs = known ? known.files / filesPerMs : 0;
    const isFull = known !== undefined && known.bytes + bytes > maxBytes;
    const endsMs = (known?.readAtMs ?? 0) + (isFull ? keepMs * fullPart : keepMs);
    const sum = known && this.#nowMs() < endsMs ? known : { ...(await read()), readAtMs: this.#nowMs() };
    if (sum.files < manyFiles) this.#known.delete(accountId);
    else this.#known.set(accountId, sum);
    if (sum.bytes + bytes > maxBytes) return false;
    sum.bytes += bytes;
    return true;
  }
}

/** Returns the number of bytes for which a file of this size counts. */
export function countedBytes(bytes: number): number {
  return Math.max(bytes, minCountedBytes);
}
