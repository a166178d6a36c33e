// Decides whether a request may get a cached answer, by its model, its key and its headers.
import { fieldError } from "../../base/errors.ts";
import type { Model } from "../../domain/models/model.ts";
import { type CachePolicy, defaultCachePolicy } from "../../domain/models/policies/cache.ts";
import type { Principal } from "../../domain/principal.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { type AnswerCacheParts, CachedRequest } from "./cached-request.ts";
import { hasRemoteMedia, isDeterministic } from "./request-digest.ts";

export const cacheHeader = "x-headrace-cache";
/** Values of the cache header. */
const wishes = ["use", "refresh", "off"] as const;
type Wish = (typeof wishes)[number];

/** The request and its sender. */
interface Asked {
  readonly request: DecodedRequest;
  readonly principal: Principal;
  /** Value of the client's cache header; null or absent if the client sent none. */
  readonly cacheHeader?: string | null;
}

export class AnswerCache {
  readonly #parts: AnswerCacheParts;

  constructor(parts: AnswerCacheParts) {
    this.#parts = parts;
  }

  /**
   * Returns a request for the response cache; undefined if the model must be asked and the answer is not cached.
   * `recording` means that the answer is stored for its client under its own id. Throws `invalid_request` for an
   * invalid header.
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

/** Requests that continue stored ones, run in the background, or come as forms or tasks always get a new answer. */
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
