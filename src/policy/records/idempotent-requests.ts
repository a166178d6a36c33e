// Answers a repeated request with the answer to the first one, if both have the same idempotency key.
import { createHash, createHmac } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { GatewayError, invalidRequest } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { FirstRequest, IdempotencyStore } from "../../domain/idempotency.ts";
import { keyOf, type Principal } from "../../domain/principal.ts";
import type { SealFor } from "../../domain/seal.ts";

export interface IdempotentRequestsOptions {
  store: IdempotencyStore;
  /** Seals answers, which may contain new API keys. */
  sealFor: SealFor;
  /** The key for digests of requests, which may contain secrets. */
  pepper: Uint8Array;
  clock: Clock;
  log: Log;
}

/** A request, as two requests with the same idempotency key must agree on it. */
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
/** Longer answers are not stored, and their requests are made again. */
const maxAnswerLength = 16 * 1024;
/** Seconds after which a request without an answer counts as cut off by the end of its process. */
const maxSeconds = 600;

export class IdempotentRequests {
  readonly #options: IdempotentRequestsOptions;

  constructor(options: IdempotentRequestsOptions) {
    this.#options = options;
  }

  /** Resolves with the answer of `work` as JSON, or with the stored answer to the first request. */
  async answer(principal: Principal, request: Repeatable, work: () => Promise<unknown>): Promise<RepeatedAnswer> {
    const { store, sealFor, log } = this.#options;
    const first = this.#firstOf(principal, request);
    const stored = await store.claim(first);
    const seal = sealFor(`idempotent ${first.owner} ${first.key}`);
    if (stored) return { json: this.#repeated(stored, first, (text) => seal.open(text)), isRepeated: true };
    let json: string;
    try {
      json = JSON.stringify(await work());
    } catch (error) {
      // Refusals and outages had no effect. After any other failure the effect is unknown.
      if (error instanceof GatewayError && error.code !== "internal_error") await store.release(first).catch(() => {});
      throw error;
    }
    // The request has had its effect, so a failure to store its answer must not fail it.
    const kept =
      json.length > maxAnswerLength ? store.release(first) : store.finish({ ...first, answer: seal.seal(json) });
    await kept.catch(() => log.warn("idempotent_answer_not_stored", { key: first.owner }));
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
      "Idempotency-Key: the answer to the first request is not known, for example because the server ended meanwhile. See whether the request had its effect before you repeat it with a new key.",
    );
  }
}
