// The access of one request to the response cache: finds a cached answer, or stores the new answer.

import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Bytes } from "../../base/bytes/byte-span.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import type { Model } from "../../domain/models/model.ts";
import type { AnswerKey, AnswerStore, FoundAnswer, KeptAnswer } from "../../domain/models/policies/answer-store.ts";
import type { CachePolicy } from "../../domain/models/policies/cache.ts";
import type { Priority } from "../../domain/models/policies/priority.ts";
import type { CacheResult } from "../../domain/usage/cache-result.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { questionOf } from "./question.ts";
import { type DigestedRequest, requestDigest } from "./request-digest.ts";
import type { Asker, Meaning, SimilarRequests } from "./similar-requests.ts";

/** Minimum bytes of one reservation on the memory account. */
const countedBytes = 64 * 1024;
/** Seconds by which the clocks of replicas may differ. An answer whose time is further in the future is not used. */
const maxSkewSeconds = 60;
/**
 * Matches a finish reason that means a refusal, in any API format. Such answers are not cached, because a retry may
 * succeed.
 */
const refused = /"(?:finish_reason|stop_reason|reason)"\s*:\s*"(?:content_filter|refusal)"/;
/** Matches a finish reason that means that a token limit was reached. Such an answer may contain only reasoning. */
const cut = /"(?:finish_reason|stop_reason|reason)"\s*:\s*"(?:length|max_tokens|max_output_tokens)"/;
/** Types of items and blocks that contain reasoning and no answer. */
const thoughts: ReadonlySet<unknown> = new Set(["reasoning", "thinking"]);
/** Matches a finish reason or a final status in a complete answer. */
const ended = /"(?:finish_reason|stop_reason)"\s*:\s*"|"status"\s*:\s*"(?:completed|incomplete)"/;
const unended = /"(?:finish_reason|stop_reason)"\s*:\s*null|"status"\s*:\s*"failed"/;

export interface AnswerCacheParts {
  readonly store: AnswerStore;
  /** Secret key for the digests of requests, so that clients cannot compute digests. */
  readonly key: Uint8Array;
  /** Finds cached requests with a similar meaning. */
  readonly similar: Pick<SimilarRequests, "vectorOf" | "nearest" | "add" | "remove" | "mark">;
  readonly clock: Pick<Clock, "nowSeconds">;
  /** Maximum bytes of an answer in the cache. */
  readonly maxAnswerBytes: number;
}

/** Facts that a look-up in the cache needs. */
export interface CacheLookup {
  readonly memoryAccount: MemoryAccount;
  readonly cancellation: Cancellation;
  readonly priority: Priority;
  readonly width: number;
  /** Names of the guardrails that have already checked the request. */
  readonly checkedBy?: readonly string[] | undefined;
  /**
   * Returns the maximum tokens of each generation, set by quotas that can end answers early. Undefined without such
   * quotas.
   */
  maxTokensOf(model: Model): number | undefined;
}

export interface CachedRequestOptions {
  readonly parts: AnswerCacheParts;
  readonly asked: DigestedRequest;
  readonly policy: CachePolicy;
  /** True if the client wants a new answer, which replaces the cached one. */
  readonly refreshes: boolean;
  readonly neverLeaves: boolean;
}

function askerOf({ memoryAccount, cancellation, priority, checkedBy }: CacheLookup, neverLeaves: boolean): Asker {
  return { memoryAccount, cancellation, priority, checkedBy, neverLeaves };
}

export class CachedRequest {
  readonly policy: CachePolicy;
  result: CacheResult = "miss";
  readonly #options: CachedRequestOptions;
  #answerKey: AnswerKey | undefined;
  #mark: unknown;
  #meaning: Meaning | undefined;
  /** True while the answer is being collected for the cache. */
  #keeps = false;
  #events = "";
  #whole: Buffer | undefined;
  #bufferedBytes = 0;

  constructor(options: CachedRequestOptions) {
    this.#options = options;
    this.policy = options.policy;
  }

  /** True if the events of a stream must be passed to `add`. */
  get collects(): boolean {
    return this.#keeps;
  }

  /** Returns a cached answer, or undefined if an engine must answer. Never rejects. */
  find(open: CacheLookup): KeptAnswer | undefined | Promise<KeptAnswer | undefined> {
    const { asked, parts, refreshes } = this.#options;
    const digest = requestDigest(asked, parts.key);
    this.#answerKey = { digest, accountId: asked.accountId, model: asked.model.id };
    if (refreshes) this.result = "refresh";
    const found = parts.store.read(this.#answerKey);
    return found instanceof Promise ? found.then((late) => this.#found(late, open)) : this.#found(found, open);
  }

  #found({ answer, mark }: FoundAnswer, open: CacheLookup): KeptAnswer | undefined | Promise<KeptAnswer | undefined> {
    this.#mark = mark;
    const { refreshes, parts, asked } = this.#options;
    if (answer && !refreshes && this.#fits(answer, open)) {
      this.result = "hit";
      return answer;
    }
    this.#keeps = true;
    const { semantic } = this.policy;
    if (!semantic) return undefined;
    const question = questionOf(asked.request);
    if (!question) return undefined;
    const partition = `${semantic.embeddingModel} ${requestDigest(asked, parts.key, question.around)}`;
    const { neverLeaves } = this.#options;
    const { mark: similarMark } = parts.similar;
    return parts.similar
      .vectorOf(question.text, semantic.embeddingModel, askerOf(open, neverLeaves))
      .then(
        (vector) => vector && this.#foundSimilar({ partition, vector, mark: similarMark }, semantic.threshold, open),
      );
  }

  async #foundSimilar(meaning: Meaning, threshold: number, open: CacheLookup): Promise<KeptAnswer | undefined> {
    this.#meaning = meaning;
    const { parts, asked, refreshes } = this.#options;
    const digest = refreshes ? undefined : parts.similar.nearest(meaning.partition, meaning.vector, threshold);
    if (digest === undefined) return undefined;
    const { answer } = await parts.store.read({ digest, accountId: asked.accountId, model: asked.model.id });
    if (!answer) parts.similar.remove(meaning.partition, digest);
    if (!answer || !this.#fits(answer, open)) return undefined;
    this.result = "similar";
    this.#keeps = false;
    return answer;
  }

  /**
   * Reports whether a cached answer may be used. It must not be older than the current policy allows, and not from the
   * future. It must not be longer than a quota allows, because only an engine's answer can be ended early.
   */
  #fits({ usage, at }: KeptAnswer, open: CacheLookup): boolean {
    const age = this.#options.parts.clock.nowSeconds() - at;
    if (age >= this.policy.ttlSeconds || age < -maxSkewSeconds) return false;
    const most = open.maxTokensOf(this.#options.asked.model);
    return most === undefined || usage.completionTokens <= most * open.width;
  }

  /** Adds events of a stream, exactly as sent to the client. */
  add(events: string, memoryAccount: MemoryAccount): void {
    this.#events += events;
    const length = this.#events.length;
    if (length > this.#options.parts.maxAnswerBytes) this.release(memoryAccount);
    else if (length - this.#bufferedBytes >= countedBytes) this.#hold(length, memoryAccount);
  }

  #hold(length: number, memoryAccount: MemoryAccount): void {
    if (memoryAccount.take("answers", length - this.#bufferedBytes)) this.release(memoryAccount);
    else this.#bufferedBytes = length;
  }

  /** Adds a complete answer, exactly as sent to the client. */
  addWhole(body: string | Bytes): void {
    if (!this.#keeps || body.length > this.#options.parts.maxAnswerBytes) return;
    // The bytes are copied, because their buffer contains other data too.
    this.#whole = typeof body === "string" ? Buffer.from(body) : Buffer.from(body.solid.view);
  }

  /** Stores the answer in the cache. Call this only for a complete answer without an error. */
  keep(usage: TokenUsage, ignored: readonly string[]): void {
    const { parts, policy } = this.#options;
    const bytes = this.#whole ?? (this.#events === "" ? undefined : Buffer.from(this.#events));
    if (!this.#keeps || !this.#answerKey || !bytes || bytes.length > parts.maxAnswerBytes) return;
    if (!this.#isAnswered(bytes, usage)) return;
    const at = parts.clock.nowSeconds();
    const answer: KeptAnswer = { bytes, usage, ignored, at, expiresAt: at + policy.ttlSeconds };
    parts.store.write(this.#answerKey, answer, this.#mark);
    if (this.#meaning) parts.similar.add(this.#meaning, this.#answerKey);
  }

  /**
   * Reports whether the answer is worth caching. Empty, refused and incomplete answers are not, because a retry may
   * give a better answer.
   */
  #isAnswered(bytes: Buffer, usage: TokenUsage): boolean {
    if (!this.#options.asked.request.dialect.generates) return true;
    const text = bytes.toString("latin1");
    if (usage.completionTokens === 0 || refused.test(text) || (cut.test(text) && !this.#saysAny(bytes))) return false;
    return !this.#whole || (ended.test(text) && !unended.test(text));
  }

  /** Reports whether the answer contains text or a tool call. */
  #saysAny(bytes: Buffer): boolean {
    const { dialect } = this.#options.asked.request;
    const answer = bytes.toString();
    if (this.#whole) {
      const said = dialect.answered(JSON.parse(answer, (_, value) => (thoughts.has(value?.type) ? null : value)));
      return said.some(({ parts, calls }) => calls.length > 0 || parts.some(({ text }) => text));
    }
    // The text is split at `\n` only. A regular expression with `.` or `$` would also stop at U+2028.
    return answer.split("\n").some((line) => {
      const data = line.startsWith("data:") ? line.slice("data:".length).trim() : "";
      const pieces = data.startsWith("{") ? dialect.streamed(JSON.parse(data)) : [];
      return pieces.some(({ text, calls }) => calls.length > 0 || Boolean(text));
    });
  }

  /** Discards the collected answer if it was not stored. */
  release(memoryAccount: MemoryAccount): void {
    if (this.#bufferedBytes > 0) memoryAccount.release("answers", this.#bufferedBytes);
    this.#bufferedBytes = 0;
    this.#keeps = false;
    this.#events = "";
    this.#whole = undefined;
  }
}
