// Answers a repeated request with the answer to the first one, if both have the same idempotency key.
import { createHash, createHmac } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { type ErrorCode, GatewayError, invalidRequest } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { FirstRequest, IdempotencyStore } from "../../domain/idempotency.ts";
import { keyOf, type Principal } from "../../domain/principal.ts";
import type { SealFor } from "../../domain/seal.ts";
import type { Throttle } from "../throttle.ts";

export interface IdempotentRequestsOptions {
  store: IdempotencyStore;
  /** Limits the requests that are stored. */
  throttle: Pick<Throttle, "require">;
  /** Seals answers, which may contain new API keys. */
  sealFor: SealFor;
  /** The key for digests of requests, which may contain secrets. */
  pepper: Uint8Array;
  clock: Clock;
  log: Log;
}

/** The parts of a request that must be equal in all requests with the same idempotency key. */
export interface Repeatable {
  /** The header `Idempotency-Key`. */
  key: string;
  /** Path and query. */
  target: string;
  body: unknown;
}

export interface RepeatedAnswer {
  json: string;
  isRepeated: boolean;
}

const keyPattern = /^[!-~]{1,255}$/;
/** Longer answers are not stored. A repetition of their requests is refused. */
const maxAnswerLength = 16 * 1024;
/** Stored in place of the answer if it is not known whether the request had its effect. */
const unknownAnswer = "";
/** Sealed in place of an answer that is too long. */
const longAnswer = "";
/** Errors after which the change may have been made, because only the confirmation of its commit may have been lost. */
const unclearErrors: ReadonlySet<ErrorCode> = new Set([
  ...(["internal_error", "service_unavailable", "upstream_error", "upstream_timeout"] as const),
]);
/** Seconds after which a request without an answer counts as cut off by the end of its process. */
const maxSeconds = 600;

export class IdempotentRequests {
  readonly #options: IdempotentRequestsOptions;

  constructor(options: IdempotentRequestsOptions) {
    this.#options = options;
  }

  /** Resolves with the answer of `work` as JSON, or with the stored answer to the first request. */
  async answer(principal: Principal, request: Repeatable, work: () => Promise<unknown>): Promise<RepeatedAnswer> {
    const { store, throttle, sealFor, log } = this.#options;
    const first = this.#firstOf(principal, request);
    await throttle.require("repeatable", principal);
    const stored = await store.claim(first);
    const seal = sealFor(`idempotent ${first.owner} ${first.key}`);
    if (stored) return { json: this.#repeated(stored, first, (text) => seal.open(text)), isRepeated: true };
    let json: string;
    const finish = (answer: string) =>
      store.finish({ ...first, answer }).catch(() => log.warn("idempotent_answer_not_stored", { key: first.owner }));
    try {
      json = JSON.stringify(await work());
    } catch (error) {
      const isRefusal = error instanceof GatewayError && !unclearErrors.has(error.code);
      // If the row of a refused request cannot be deleted, it only delays a repetition until it expires. So the refusal
      // itself is thrown, and not that failure.
      await (isRefusal ? store.release(first).catch(() => {}) : finish(unknownAnswer));
      throw error;
    }
    // The request has had its effect, so a failure to store its answer must not fail it.
    await finish(seal.seal(json.length > maxAnswerLength ? longAnswer : json));
    return { json, isRepeated: false };
  }

  #firstOf(principal: Principal, { key, target, body }: Repeatable): FirstRequest {
    if (!keyPattern.test(key)) {
      throw invalidRequest(
        "Idempotency-Key: must be 1 to 255 printable ASCII characters without spaces, such as a UUID.",
      );
    }
    const { pepper, clock } = this.#options;
    const request = createHmac("sha256", pepper)
      .update(JSON.stringify([target, body]))
      .digest("hex");
    return {
      owner: keyOf(principal).id,
      key: createHash("sha256").update(key).digest("hex"),
      ...{ request, at: clock.nowSeconds(), answer: null },
    };
  }

  #repeated(stored: FirstRequest, now: FirstRequest, open: (text: string) => string | undefined): string {
    if (stored.request !== now.request) {
      throw invalidRequest(
        "Idempotency-Key: was sent with another request in the last 24 hours. Use a new key for each request, and the same key only to repeat it unchanged.",
      );
    }
    const json = stored.answer === null ? undefined : open(stored.answer);
    if (json === longAnswer) {
      throw invalidRequest(
        `Idempotency-Key: the first request was carried out, but its answer is longer than ${maxAnswerLength / 1024} KiB and not stored. Read its effect before you send it again with a new key.`,
      );
    }
    if (json !== undefined) return json;
    if (stored.answer === null && now.at - stored.at < maxSeconds) {
      throw new GatewayError(
        "service_unavailable",
        "The first request with this Idempotency-Key is still running. Retry in 1 s.",
        {
          retryAfterSeconds: 1,
        },
      );
    }
    throw invalidRequest(
      "Idempotency-Key: the answer to the first request is not known, because the request failed or the server ended meanwhile. See whether the request had its effect before you repeat it with a new key.",
    );
  }
}
