// Requests that differ in their last message alone, told apart by what that means: vectors of an embedding model.
import { bufferedBytes, type MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import type { AnswerKey } from "../../domain/models/policies/answer-store.ts";
import type { Priority } from "../../domain/models/policies/priority.ts";
import type { OwnCalls } from "../own-calls.ts";

/** An answer is not kept waiting for longer than most models take to read a message. */
const deadlineMs = 1_000;
/** A model that did not answer in time is left alone for so long: its requests are not all kept waiting in vain. */
const restMs = 10_000;
/** Looked through one by one: some hundred thousandths of a second. */
const maxOfPartition = 256;
/** Dimensions; a longer one is no embedding. */
const maxVectorLength = 8_192;
/** What an entry takes beside its vector. */
const entryBytes = 256;

export interface Asker {
  readonly memoryAccount: MemoryAccount;
  readonly cancellation: Cancellation;
  readonly neverLeaves: boolean;
  readonly priority: Priority;
  /** Names of the guardrails that have looked at it. */
  readonly checkedBy?: readonly string[] | undefined;
}

/** A question, and with what it may be compared: requests that are the same but for it. */
export interface Meaning {
  readonly partition: string;
  /** It has the length 1: the product of two is their cosine. */
  readonly vector: Float32Array;
  /** `SimilarRequests.mark` of when it was asked. */
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
  /** All partitions together. */
  readonly maxBytes: number;
}

/** In memory of this process alone, and without the texts. The partition that was not used for the longest time goes first. */
export class SimilarRequests {
  readonly #options: SimilarRequestsOptions;
  readonly #partitions = new Map<string, Partition>();
  /** Models that did not answer in time, until when they are left alone: monotonic milliseconds. */
  readonly #resting = new Map<string, number>();
  #bytes = 0;
  #mark = 0;

  constructor(options: SimilarRequestsOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Raised by each `forget`: what was asked before it is not kept after it. */
  get mark(): number {
    return this.#mark;
  }

  /** Undefined where there is none in time. Never rejects. */
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
      const whose = { memoryAccount, cancellation, neverLeaves, priority, lookedAtBy: checkedBy };
      const answer = await this.#options.ownCalls.ask({ purpose: "cache", operation: "embedding", body, ...whose });
      this.#resting.delete(model);
      return readVector(answer);
    } catch {
      // Its own request tells why; this one is answered as if nothing were kept.
      return undefined;
    } finally {
      clearTimeout(timer);
      asker.cancellation.off(stop);
    }
  }

  /** The digest of the request whose question is the nearest, where that is as near as `threshold`. */
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

  /** Its answer is kept no longer: what is nearest after it is found from now on. */
  remove(partition: string, digest: string): void {
    const entries = this.#partitions.get(partition)?.entries ?? [];
    const index = entries.findIndex((entry) => entry.digest === digest);
    if (index >= 0) this.#drop(entries, index);
    if (entries.length === 0) this.#partitions.delete(partition);
  }

  /** What an account has; left out: all. */
  forget(accountId?: string): void {
    this.#mark++;
    for (const [partition, within] of this.#partitions) {
      if (accountId === undefined || within.accountId === accountId) this.#dropAll(partition);
    }
  }

  close(): void {
    this.forget();
  }

  /** Once its time is over one request tries it, and the others go on without. */
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

/** Undefined where the answer has no vector of some length. */
function readVector(answer: string): Float32Array | undefined {
  const { data } = JSON.parse(answer) as { data?: readonly { embedding?: unknown }[] };
  const numbers = data?.[0]?.embedding;
  if (!Array.isArray(numbers) || numbers.length === 0 || numbers.length > maxVectorLength) return undefined;
  // What is no number stands there as null, and would count as 0: the rest of such a vector points anywhere.
  if (!numbers.every((one) => typeof one === "number")) return undefined;
  const vector = Float32Array.from(numbers);
  const length = Math.sqrt(product(vector, vector));
  if (!(length > 0) || !Number.isFinite(length)) return undefined;
  return vector.map((value) => value / length);
}
