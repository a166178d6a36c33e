// Chooses the model that answers, if the requests of a model are split among several. All requests of a conversation
// get the same model, in every process.
import type { Model } from "../../domain/models/model.ts";
import type { SplitPart } from "../../domain/models/policies/traffic.ts";
import { accessibleModel } from "../../policy/authorize.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import type { InferenceCall, InferenceDeps } from "../call.ts";
import { promptPrefixOf } from "../routing/prompt-prefix.ts";
import { isServable } from "../routing/servable.ts";

/**
 * Returns the model that answers. If the chosen model cannot or may not serve the request, this is the requested model.
 * Embeddings are never split, because vectors from different models cannot be compared.
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
 * Returns the model with the lowest score (weighted rendezvous hashing). Each model has a score for each conversation,
 * and a higher percentage lowers the score. If the percentage of a model rises, it keeps its conversations.
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
  // The hash depends on no secret of the installation, because it must be the same in every process and after every
  // start.
  const hash = Bun.hash.xxHash64(`${asked}\n${part}\n${conversation}`);
  const uniform = (Number(hash >> 11n) + 0.5) / 2 ** 53;
  return -Math.log(uniform) / percent;
}

/** Returns a value that all requests of a conversation have in common. Different accounts never have the same value. */
export function conversationOf(request: DecodedRequest, accountId: string): string {
  const { goesOn, endUser } = request;
  if (goesOn?.conversationId) return `${accountId} conversation ${goesOn.conversationId}`;
  const { prompt_cache_key: cacheKey } = request.body;
  if (typeof cacheKey === "string" && cacheKey !== "") return `${accountId} key ${cacheKey}`;
  if (endUser !== undefined) return `${accountId} user ${endUser}`;
  return `${accountId} prompt ${promptPrefixOf(request, accountId)?.origin}`;
}
