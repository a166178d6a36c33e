// Requests that differ in their last message alone, told apart by what that means: vectors of an embedding model.
import type { Holder } from "../../base/bytes/held-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { OwnCalls } from "../own-calls.ts";

/** An answer is not kept waiting for longer than most models take to read a message. */
const deadlineMs = 1_000;
/** Looked through one by one: some hundred thousandths of a second. */
const mostOfPartition = 256;
/** All partitions together. */
const mostBytes = 64 * 1024 * 1024;
/** Dimensions; a longer one is no embedding. */
const longestVector = 8_192;
/** What an entry takes beside its vector. */
const entryBytes = 256;

export interface Asker {
  readonly holder: Holder;
  readonly cancellation: Cancellation;
  readonly neverLeaves: boolean;
  /** Names of the guardrails that have looked at it. */
  readonly lookedAtBy?: readonly string[] | undefined;
}

interface Entry {
  /** It has the length 1: the product of two is their cosine. */
  readonly vector: Float32Array;
  readonly digest: string;
}

/** In memory of this process alone, and without the texts. The partition that was not used for the longest time goes first. */
export class SimilarRequests {
  readonly #ownCalls: OwnCalls;
  readonly #partitions = new Map<string, Entry[]>();
  #bytes = 0;

  constructor(ownCalls: OwnCalls) {
    this.#ownCalls = ownCalls;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Undefined where there is none in time. Never rejects. */
  async vectorOf(text: string, model: string, asker: Asker): Promise<Float32Array | undefined> {
    const cancellation = new Cancellation();
    const stop = () => cancellation.cancel();
    asker.cancellation.onCancel(stop);
    const timer = setTimeout(stop, deadlineMs);
    try {
      const body = JSON.stringify({ model, input: text });
      const { holder, neverLeaves, lookedAtBy } = asker;
      const asked = { purpose: "cache", operation: "embedding", body } as const;
      const call = { ...asked, holder, cancellation, neverLeaves, lookedAtBy };
      return readVector(await this.#ownCalls.ask(call));
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
    const entries = this.#partitions.get(partition);
    if (!entries) return undefined;
    this.#partitions.delete(partition);
    this.#partitions.set(partition, entries);
    let best: string | undefined;
    let most = threshold;
    for (const entry of entries) {
      const cosine = product(entry.vector, vector);
      if (cosine < most) continue;
      most = cosine;
      best = entry.digest;
    }
    return best;
  }

  add(partition: string, vector: Float32Array, digest: string): void {
    const entries = this.#partitions.get(partition) ?? [];
    this.#partitions.delete(partition);
    this.#partitions.set(partition, entries);
    const known = entries.findIndex((entry) => entry.digest === digest);
    if (known >= 0 || entries.length >= mostOfPartition) this.#drop(entries, Math.max(known, 0));
    entries.push({ vector, digest });
    this.#bytes += bytesOf(vector);
    for (const [oldest, others] of this.#partitions) {
      if (this.#bytes <= mostBytes) break;
      this.#partitions.delete(oldest);
      for (const entry of others) this.#bytes -= bytesOf(entry.vector);
    }
  }

  clear(): void {
    this.#partitions.clear();
    this.#bytes = 0;
  }

  #drop(entries: Entry[], index: number): void {
    for (const { vector } of entries.splice(index, 1)) this.#bytes -= bytesOf(vector);
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
  if (!Array.isArray(numbers) || numbers.length === 0 || numbers.length > longestVector) return undefined;
  const vector = Float32Array.from(numbers as number[]);
  const length = Math.sqrt(product(vector, vector));
  if (!(length > 0) || !Number.isFinite(length)) return undefined;
  return vector.map((value) => value / length);
}
