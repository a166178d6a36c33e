// Decides which requests a quota counts.
import { matchesModel } from "../models/model-patterns.ts";
import type { TotalsOwner } from "../usage/usage.ts";
import type { Quota, Reservation } from "./limits.ts";

/** Reports whether a quota counts a request for this model with these tags. */
export function isCounted(
  { filter }: Pick<Quota, "filter">,
  { model, tags }: Pick<Reservation, "model" | "tags">,
): boolean {
  if (filter?.tag !== undefined && !tags?.includes(filter.tag)) return false;
  if (filter?.models === undefined) return true;
  return model !== undefined && matchesModel(filter.models, model);
}

/** Reports whether a quota belongs to this owner and has this filter. */
export function isQuotaOf({ owner, ownerId, environment, filter }: Quota, of: TotalsOwner): boolean {
  return (
    owner === of.type &&
    ownerId === of.id &&
    environment === of.environment &&
    filter?.tag === of.tag &&
    JSON.stringify(filter?.models) === JSON.stringify(of.models)
  );
}
