// Composes the model requests that the gateway itself makes, and finds the principal for them.
import type { Clock } from "../base/clock.ts";
import type { Config, ReloadableConfig } from "../config/config.ts";
import type { InferenceDeps } from "../inference/call.ts";
import { GatewayCalls, type Operator } from "../inference/gateway-calls.ts";
import { renderError } from "../wire/errors.ts";
import type { Governance } from "./governance.ts";

export interface OwnCallsOptions {
  config: Pick<Config, "mode">;
  /** Returns the current configuration. */
  current(): Pick<ReloadableConfig, "limits">;
  governance: Pick<Governance, "keys" | "accounts">;
  inference: InferenceDeps;
  clock: Clock;
}

/**
 * Milliseconds for which the found key is used. After a rotation of the first key, its successor is used within this
 * time.
 */
const rememberedMs = 60_000;

export function openOwnCalls({ config, current, governance, inference, clock }: OwnCallsOptions): GatewayCalls {
  const { keys, accounts } = governance;
  const environment = config.mode === "development" ? "dev" : "live";
  const find = async (): Promise<Operator | undefined> => {
    const key = await keys.firstKey(environment);
    const account = key && (await accounts.findAccount(key.accountId));
    return account && { account, key };
  };
  return new GatewayCalls({
    inference,
    operator: rememberedOperator(find, clock),
    requestLimits: () => current().limits,
    renderError,
  });
}

/**
 * Concurrent callers share one lookup. After the first success no caller waits for the database: the lookup is repeated
 * in the background, and if it fails, the last result stays.
 */
export function rememberedOperator(
  find: () => Promise<Operator | undefined>,
  clock: Pick<Clock, "monotonicMs">,
): () => Promise<Operator | undefined> {
  let known: Operator | undefined;
  let untilMs = 0;
  let refreshing: Promise<Operator | undefined> | undefined;
  const refresh = async () => {
    try {
      known = await find();
    } catch (error) {
      if (!known) throw error;
    } finally {
      refreshing = undefined;
    }
    untilMs = clock.monotonicMs() + rememberedMs;
    return known;
  };
  return async () => {
    if (known && clock.monotonicMs() < untilMs) return known;
    refreshing ??= refresh();
    return known ?? (await refreshing);
  };
}
