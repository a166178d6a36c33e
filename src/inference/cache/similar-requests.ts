// Finds requests that differ only in the last message, if these messages have a similar meaning. Meanings are compared
// by vectors from an embedding model.
import { bufferedBytes, type MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import type { AnswerKey } from "../../domain/models/policies/answer-store.ts";
import type { Priority } from "../../domain/models/policies/priority.ts";
import type { OwnCalls } from "../own-calls.ts";

/** Milliseconds to wait for a vector. Most models need about as long merely to read the message. */
const deadlineMs = 1_000;
/** Milliseconds for which an embedding model is not used after a timeout. Otherwise every request would wait for it. */
const restMs = 10_000;
/**
 * Maximum entries of a partition. All entries are compared one by one, which takes some hundredths of a millisecond.
 */
const maxOfPartition = 256;
/** Maximum dimensions of a vector. A longer list of numbers is not an embedding. */
const maxVectorLength = 8_192;
/** Estimated bytes of an entry, not counting its vector. */
const entryBytes = 256;

export interface Asker {
  readonly memoryAccount: MemoryAccount;
  readonly cancellation: Cancellation;
  readonly neverLeaves: boolean;
  readonly priority: Priority;
  /** Names of the guardrails that have already checked the request. */
  readonly checkedBy?: readonly string[] | undefined;
}

/** The meaning of a request's last message. Requests in the same partition are equal except for that message. */
export interface Meaning {
  readonly partition: string;
  /** The vector, scaled to length 1, so that a dot product is a cosine. */
  readonly vector: Float32Array;
  /** The value of `SimilarRequests.mark` when the request arrived. */
  readonly mark: number;
}

interface Entry extends Pick<Meaning, "vector"> {
  readonly digest: string;
}

interface Partition {
  readonly accountId: string;
  readonly entries: Entry[];
}

export interface SimilarRequestsOptions {
  readonly ownCalls: OwnCalls;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Maximum bytes of all partitions together. */
  readonly maxBytes: number;
}

/**
 * An index of vectors in the memory of this process. It contains no texts. If it is full, the least recently used
 * partition is dropped.
 */
export class SimilarRequests {
  readonly #options: SimilarRequestsOptions;
  readonly #partitions = new Map<string, Partition>();
  /** For each model, the time in monotonic milliseconds until which it is not used, because it was too slow. */
  readonly #resting = new Map<string, number>();
  #bytes = 0;
  #mark = 0;

  constructor(options: SimilarRequestsOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Incremented by each `forget`. A request that began before `forget` is then not added. */
  get mark(): number {
    return this.#mark;
  }

  /** Returns the vector of a text. Returns undefined if the embedding model fails or takes too long. Never rejects. */
  async vectorOf(text: string, model: string, asker: Asker): Promise<Float32Array | undefined> {
    if (this.#isResting(model)) return undefined;
    const cancellation = new Cancellation();
    const stop = () => cancellation.cancel();
    asker.cancellation.onCancel(stop);
    const timer = setTimeout(() => {
      this.#rest(model);
      stop();
    }, deadlineMs);
    try {
      const body = JSON.stringify({ model, input: text });
      const { memoryAccount, neverLeaves, priority, checkedBy } = asker;
      const answer = await this.#options.ownCalls.ask({
        purpose: "cache",
        operation: "embedding",
        body,
        memoryAccount,
        cancellation,
        neverLeaves,
        priority,
        checkedBy,
      });
      this.#resting.delete(model);
      return readVector(answer);
    } catch {
      // The embedding request has recorded its own error. Without a vector, the client's request does not use the cache
      // of similar requests.
      return undefined;
    } finally {
      clearTimeout(timer);
      asker.cancellation.off(stop);
    }
  }

  /** Returns the digest of the most similar request, if the cosine of the two vectors is at least `threshold`. */
  nearest(partition: string, vector: Float32Array, threshold: number): string | undefined {
    const found = this.#partitions.get(partition);
    if (!found) return undefined;
    this.#partitions.delete(partition);
    this.#partitions.set(partition, found);
    let best: string | undefined;
    let most = threshold;
    for (const entry of found.entries) {
      const cosine = product(entry.vector, vector);
      if (cosine < most) continue;
      most = cosine;
      best = entry.digest;
    }
    return best;
  }

  add({ partition, vector, mark }: Meaning, { digest, accountId }: Pick<AnswerKey, "digest" | "accountId">): void {
    if (mark !== this.#mark) return;
    const within = this.#partitions.get(partition) ?? { accountId, entries: [] };
    const { entries } = within;
    this.#partitions.delete(partition);
    this.#partitions.set(partition, within);
    const known = entries.findIndex((entry) => entry.digest === digest);
    if (known >= 0 || entries.length >= maxOfPartition) this.#drop(entries, Math.max(known, 0));
    entries.push({ vector, digest });
    this.#count(bytesOf(vector));
    for (const oldest of this.#partitions.keys()) {
      if (this.#bytes <= this.#options.maxBytes) break;
      this.#dropAll(oldest);
    }
  }

  /** Removes an entry whose answer is no longer cached. */
  remove(partition: string, digest: string): void {
    const entries = this.#partitions.get(partition)?.entries ?? [];
    const index = entries.findIndex((entry) => entry.digest === digest);
    if (index >= 0) this.#drop(entries, index);
    if (entries.length === 0) this.#partitions.delete(partition);
  }

  /** Removes the entries of an account, or all entries if undefined. */
  forget(accountId?: string): void {
    this.#mark++;
    for (const [partition, within] of this.#partitions) {
      if (accountId === undefined || within.accountId === accountId) this.#dropAll(partition);
    }
  }

  close(): void {
    this.forget();
  }

  /**
   * Reports whether the model is paused. After the pause, one request tries the model. Until it succeeds, other
   * requests go on without the model.
   */
  #isResting(model: string): boolean {
    const untilMs = this.#resting.get(model);
    if (untilMs === undefined) return false;
    if (this.#options.clock.monotonicMs() < untilMs) return true;
    this.#rest(model);
    return false;
  }

  #rest(model: string): void {
    this.#resting.set(model, this.#options.clock.monotonicMs() + restMs);
  }

  #dropAll(partition: string): void {
    for (const { vector } of this.#partitions.get(partition)?.entries ?? []) this.#count(-bytesOf(vector));
    this.#partitions.delete(partition);
  }

  #drop(entries: Entry[], index: number): void {
    for (const { vector } of entries.splice(index, 1)) this.#count(-bytesOf(vector));
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    bufferedBytes.kept(bytes);
  }
}

function bytesOf(vector: Float32Array): number {
  return vector.byteLength + entryBytes;
}

function product(a: Float32Array, b: Float32Array): number {
  if (a.length !== b.length) return Number.NEGATIVE_INFINITY;
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] as number) * (b[i] as number);
  return sum;
}

/** Returns the vector in an embedding answer, scaled to length 1. Undefined if it is invalid or zero. */
function readVector(answer: string): Float32Array | undefined {
  const { data } = JSON.parse(answer) as { data?: readonly { embedding?: unknown }[] };
  const numbers = data?.[0]?.embedding;
  if (!Array.isArray(numbers) || numbers.length === 0 || numbers.length > maxVectorLength) return undefined;
  // JSON contains null in place of NaN and similar numbers. They would count as 0 and distort the vector.
  if (!numbers.every((one) => typeof one === "number")) return undefined;
  const vector = Float32Array.from(numbers);
  const length = Math.sqrt(product(vector, vector));
  if (!(length > 0) || !Number.isFinite(length)) return undefined;
  return vector.map((value) => value / length);
}
