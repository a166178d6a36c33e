// Decides which of the models that share a model's requests gets one: the same for all requests of a conversation, in
// every process.
import type { Model } from "../../domain/models/model.ts";
import type { SplitPart } from "../../domain/models/policies/traffic.ts";
import { accessibleModel } from "../../policy/authorize.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import type { InferenceCall, InferenceDeps } from "../call.ts";
import { promptPrefixOf } from "../routing/prompt-prefix.ts";
import { isServable } from "../routing/servable.ts";

/**
 * Returns the model that answers. It is the requested one if no other is chosen, if the chosen one cannot or may not
 * serve the request, and if nothing is generated: vectors of two models are not comparable.
 */
export function splitOf(
  asked: Model,
  parts: readonly SplitPart[],
  { request, principal }: Pick<InferenceCall<unknown>, "request" | "principal">,
  catalog: InferenceDeps["catalog"],
): Model {
  if (!request.dialect.generates) return asked;
  const id = partOf(asked.id, parts, conversationOf(request, principal.account.id));
  const chosen = id === asked.id ? undefined : catalog.get(id);
  if (!chosen?.environments.includes(principal.environment)) return asked;
  const usable = accessibleModel(principal, chosen);
  return usable && isServable(usable, request) ? usable : asked;
}

/**
 * Returns the part with the lowest score, by weighted rendezvous hashing: a random number for this conversation and
 * part, which is lower the more percent the part has. A part that gets a greater share keeps all of its conversations.
 * With a single other model, exactly the difference moves.
 */
export function partOf(asked: string, parts: readonly SplitPart[], conversation: string): string {
  const own = parts.reduce((remaining, { percent }) => remaining - percent, 100);
  let chosen = asked;
  let lowest = scoreOf(asked, asked, own, conversation);
  for (const { model, percent } of parts) {
    const score = scoreOf(asked, model, percent, conversation);
    if (score < lowest) [chosen, lowest] = [model, score];
  }
  return chosen;
}

function scoreOf(asked: string, part: string, percent: number, conversation: string): number {
  if (percent <= 0) return Number.POSITIVE_INFINITY;
  // The hash is the same in every process and after every start: it contains no key of the installation, which may be
  // replaced.
  const hash = Bun.hash.xxHash64(`${asked}\n${part}\n${conversation}`);
  const uniform = (Number(hash >> 11n) + 0.5) / 2 ** 53;
  return -Math.log(uniform) / percent;
}

/** Returns what all requests of a conversation share, and requests of other accounts do not. */
export function conversationOf(request: DecodedRequest, accountId: string): string {
  const { goesOn, endUser } = request;
  if (goesOn?.conversationId) return `${accountId} conversation ${goesOn.conversationId}`;
  const { prompt_cache_key: cacheKey } = request.body;
  if (typeof cacheKey === "string" && cacheKey !== "") return `${accountId} key ${cacheKey}`;
  if (endUser !== undefined) return `${accountId} user ${endUser}`;
  return `${accountId} prompt ${promptPrefixOf(request, accountId)?.origin}`;
}
