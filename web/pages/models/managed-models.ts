// What operators see of the models beyond their state: who declares each, its price, and those that run nowhere.
import { limitAmounts } from "../../api/limit-amounts.ts";
import { type Health, healthOf } from "../../api/models.ts";
import { useRead } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { ManagedModel, ManagedModelList, ModelStatus, TierList } from "../../api/types.ts";

export const managedPath = "/v1/admin/models";
/** What a change of a model makes stale. */
export const staleWithModels = [managedPath, "/v1/model-status", "/v1/models"];

export function managedPathOf(id: string): string {
  return `${managedPath}/${encodeURIComponent(id)}`;
}

const everyMs = 15_000;

export interface ShownModel {
  status: ModelStatus;
  /** Undefined for who is no operator. */
  managed: ManagedModel | undefined;
  health: Health;
  /** False: it is on offer in other environments, or runs nowhere. */
  isHere: boolean;
}

export function useManagedModels() {
  const { isOperator } = useSession();
  return useRead<ManagedModelList>(managedPath, {}, { enabled: isOperator, everyMs });
}

/** In the order of the first list, then those that it does not have. */
export function shownModels(models: readonly ModelStatus[], managed: readonly ManagedModel[]): ShownModel[] {
  const byId = new Map(managed.map((model) => [model.id, model]));
  const here = models.map((status): ShownModel => {
    const known = byId.get(status.id);
    byId.delete(status.id);
    return { status, managed: known, health: healthOf(status), isHere: true };
  });
  const elsewhere = [...byId.values()].map((model): ShownModel => {
    const health = model.status === "ok" || model.status === "partly" ? model.status : "down";
    return { status: statusOf(model), managed: model, health, isHere: false };
  });
  return [...here, ...elsewhere];
}

function statusOf({ id, capabilities, context_length, environments, price }: ManagedModel): ModelStatus {
  return {
    ...{ object: "model_status", id, environments, price, deployments: [] },
    ...(capabilities ? { capabilities } : {}),
    ...(context_length === null ? {} : { context_length }),
  };
}

/** Names of the tiers that bound what is spent; those are in vain for a model without a price. Undefined until they are known. */
export function useSpendTiers(): readonly string[] | undefined {
  const { isOperator } = useSession();
  const { data, error } = useRead<TierList>("/v1/admin/tiers", {}, { enabled: isOperator });
  if (!isOperator || error) return [];
  const bounded = data?.data.filter((tier) =>
    limitAmounts.some(({ unit, wire }) => unit === "USD" && tier[wire] !== null),
  );
  return bounded?.map(({ name }) => name);
}
