// The operators' view of models: their source, price, and models that run nowhere.
import { limitAmounts } from "../../api/limit-amounts.ts";
import { type Health, healthOf } from "../../api/models.ts";
import { useRead } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { ManagedModel, ManagedModelList, ModelStatus, TierList } from "../../api/types.ts";

export const managedPath = "/v1/admin/models";
/** The queries that a change of a model makes stale. */
export const staleWithModels = [managedPath, "/v1/model-status", "/v1/models"];

export function managedPathOf(id: string): string {
  return `${managedPath}/${encodeURIComponent(id)}`;
}

const everyMs = 15_000;

export interface ShownModel {
  status: ModelStatus;
  /** The operators' data of the model; undefined for users who are not operators. */
  managed: ManagedModel | undefined;
  health: Health;
  /** False if the model is only offered in other environments, or runs nowhere. */
  isHere: boolean;
}

export function useManagedModels() {
  const { isOperator } = useSession();
  return useRead<ManagedModelList>(managedPath, {}, { enabled: isOperator, everyMs });
}

/** Merges both lists: first `models` in their order, then the managed models that are missing there. */
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

/** The names of tiers that limit spend, which have no effect on a model without a price. Undefined while loading. */
export function useSpendTiers(): readonly string[] | undefined {
  const { isOperator } = useSession();
  const { data, error } = useRead<TierList>("/v1/admin/tiers", {}, { enabled: isOperator });
  if (!isOperator || error) return [];
  const bounded = data?.data.filter((tier) =>
    limitAmounts.some(({ unit, wire }) => unit === "USD" && tier[wire] !== null),
  );
  return bounded?.map(({ name }) => name);
}
