// Decides whether a request may use the response cache. The model's policy, the key and the request's headers decide.
import { fieldError } from "../../base/errors.ts";
import type { Model } from "../../domain/models/model.ts";
import { type CachePolicy, defaultCachePolicy } from "../../domain/models/policies/cache.ts";
import type { Principal } from "../../domain/principal.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { type AnswerCacheParts, CachedRequest } from "./cached-request.ts";
import { hasRemoteMedia, isDeterministic } from "./request-digest.ts";

export const cacheHeader = "x-headrace-cache";
/** Allowed values of the header `x-headrace-cache`. */
const wishes = ["use", "refresh", "off"] as const;
type Wish = (typeof wishes)[number];

/** The facts of a request that decide whether it may use the cache. */
interface Asked {
  readonly request: DecodedRequest;
  readonly principal: Principal;
  /** Value of the header `x-headrace-cache`. Null or undefined if the header is missing. */
  readonly cacheHeader?: string | null;
}

export class AnswerCache {
  readonly #parts: AnswerCacheParts;

  constructor(parts: AnswerCacheParts) {
    this.#parts = parts;
  }

  /**
   * Returns the request's access to the cache, or undefined if it must not use the cache. `recording` is true if
   * the answer is stored under its own id. Throws `invalid_request` for an invalid header.
   */
  open(call: Asked, model: Model, recording: boolean): CachedRequest | undefined {
    const said = call.principal.responseCache;
    const ofModel = model.policies?.cache;
    if (said === undefined && ofModel === undefined) return undefined;
    if (said === "off" || recording) return undefined;
    return this.#open(call, model, ofModel ?? defaultCachePolicy);
  }

  #open(call: Asked, model: Model, policy: CachePolicy): CachedRequest | undefined {
    const { request, principal } = call;
    const wish = wishOf(call.cacheHeader ?? null);
    if (wish === "off" || !isRepeatable(request)) return undefined;
    const { requests } = policy;
    const isWanted =
      wish !== undefined || requests === "all" || (requests === "deterministic" && isDeterministic(request));
    if (!isWanted || (wish === undefined && hasRemoteMedia(request))) return undefined;
    const { account, environment, modelAccess } = principal;
    return new CachedRequest({
      ...{ parts: this.#parts, policy, refreshes: wish === "refresh", neverLeaves: modelAccess?.neverLeaves === true },
      asked: { request, model, accountId: account.id, environment },
    });
  }
}

/** Reports whether the request may be cached. Continued requests, background requests, forms and tasks may not. */
function isRepeatable({ dialect, background, namesKept, goesOn, form }: Asked["request"]): boolean {
  return dialect.task === undefined && !background && !namesKept && goesOn === undefined && form === undefined;
}

function wishOf(header: string | null): Wish | undefined {
  if (header === null) return undefined;
  const wish = wishes.find((one) => one === header.trim().toLowerCase());
  if (wish) return wish;
  throw fieldError(
    cacheHeader,
    "must be `use` (an answer that is kept will do), `refresh` (answer anew, and keep that) or `off` (neither). Leave the header out for what the model and the key say.",
  );
}
