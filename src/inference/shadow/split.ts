// Which of the models that share a model's requests gets one: always the same for one conversation, wherever it is asked.
import type { Model } from "../../domain/models/model.ts";
import type { SplitPart } from "../../domain/models/policies/traffic.ts";
import { withinReach } from "../../policy/authorize.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import type { InferenceCall, InferenceDeps } from "../call.ts";
import { promptPrefixOf } from "../routing/prompt-prefix.ts";
import { isServable } from "../routing/servable.ts";

/**
 * The model that answers: the one that was asked for where no other is chosen, where the chosen one could not serve the request
 * or may not, and for what generates nothing: vectors of two models have nothing in common.
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
  const usable = withinReach(principal, chosen);
  return usable && isServable(usable, request) ? usable : asked;
}

/**
 * The part with the lowest score, which is a random number for this conversation and part, the lower the more percent it has:
 * weighted rendezvous hashing. Whoever is given a greater share keeps all that it had. Of one other model, exactly the
 * difference moves.
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
  // The same in every process and after every start: no key of the installation is in it, which may be replaced.
  const hash = Bun.hash.xxHash64(`${asked}\n${part}\n${conversation}`);
  const uniform = (Number(hash >> 11n) + 0.5) / 2 ** 53;
  return -Math.log(uniform) / percent;
}

/** What all turns of a conversation have in common, and those of other accounts have not. */
export function conversationOf(request: DecodedRequest, accountId: string): string {
  const { goesOn, endUser } = request;
  if (goesOn?.conversationId) return `${accountId} conversation ${goesOn.conversationId}`;
  const { prompt_cache_key: cacheKey } = request.body;
  if (typeof cacheKey === "string" && cacheKey !== "") return `${accountId} key ${cacheKey}`;
  if (endUser !== undefined) return `${accountId} user ${endUser}`;
  return `${accountId} prompt ${promptPrefixOf(request, accountId)?.origin}`;
}
