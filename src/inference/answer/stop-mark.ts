// Marks an answer that a quota ended early.
import { usdOf } from "../../base/money.ts";
import type { StoppedBy } from "../../domain/limits/limits.ts";
import type { StopMark } from "../../requests/dialects/answer.ts";

/** The ledger's code for an answer that a quota ended early. The request still counts as served. */
export const spentCode = "quota_spent";

/** Returns the mark that the client gets in the answer. */
export function stopMark(by: StoppedBy | undefined): StopMark {
  if (!by) return { stopped_by: "quota", quota: {} };
  const { quota, unit, period } = by;
  const { owner, called, window, filter } = quota;
  const limit = quota[unit] ?? 0;
  return {
    stopped_by: "quota",
    quota: {
      owner: called ?? owner,
      unit: unit === "nanoUsd" ? "usd" : unit,
      limit: unit === "nanoUsd" ? usdOf(limit) : limit,
      per: window?.per ?? "month",
      models: filter?.models ? [...filter.models] : null,
      tag: filter?.tag ?? null,
      resets_at: period?.end ?? null,
    },
  };
}
