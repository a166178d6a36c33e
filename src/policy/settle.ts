// Records what a request consumed, once, however it ended.
import type { Operation } from "../domain/engine.ts";
import type { Model, Price } from "../domain/model.ts";
import type { Principal } from "../domain/principal.ts";
import type { TokenUsage, UsageOutcome, UsageStore } from "../domain/usage.ts";

export interface Settlement {
  requestId: string;
  principal: Principal;
  operation: Operation;
  model: Model;
  outcome: UsageOutcome;
  usage: TokenUsage;
  /** Unix seconds. */
  startedAt: number;
  durationMs: number;
}

export function settle(store: UsageStore, settlement: Settlement): void {
  const { principal, model, usage } = settlement;
  store.record({
    ...usage,
    requestId: settlement.requestId,
    at: settlement.startedAt,
    accountId: principal.accountId,
    keyId: principal.keyId,
    environment: principal.environment,
    operation: settlement.operation,
    model: model.id,
    outcome: settlement.outcome,
    cost: costOf(usage, model.price),
    durationMs: settlement.durationMs,
  });
}

/** USD; null where the model has no price. */
export function costOf(usage: TokenUsage, price: Price | undefined): number | null {
  if (!price) return null;
  return (usage.promptTokens * price.input + usage.completionTokens * price.output) / 1_000_000;
}
