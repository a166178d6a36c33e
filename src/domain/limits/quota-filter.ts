// Which requests a quota counts.
import { matchesModel } from "../models/model-patterns.ts";
import type { TotalsOwner } from "../usage/usage.ts";
import type { Quota, Reservation } from "./limits.ts";

/** Whether a quota counts a request that asks for this model and has these tags. */
export function isCounted(
  { filter }: Pick<Quota, "filter">,
  { model, tags }: Pick<Reservation, "model" | "tags">,
): boolean {
  if (filter?.tag !== undefined && !tags?.includes(filter.tag)) return false;
  if (filter?.models === undefined) return true;
  return model !== undefined && matchesModel(filter.models, model);
}

/** Whether it counts the usage of this owner, and of no other models and tags. */
export function isQuotaOf({ owner, ownerId, environment, filter }: Quota, of: TotalsOwner): boolean {
  return (
    owner === of.type &&
    ownerId === of.id &&
    environment === of.environment &&
    filter?.tag === of.tag &&
    JSON.stringify(filter?.models) === JSON.stringify(of.models)
  );
}
