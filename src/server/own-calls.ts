// Composes the calls of the gateway's own, and finds out in whose name they are made.
import type { Clock } from "../base/clock.ts";
import type { Config, ReloadableConfig } from "../config/config.ts";
import type { InferenceDeps } from "../inference/call.ts";
import { GatewayCalls, type Operator } from "../inference/gateway-calls.ts";
import { renderError } from "../wire/errors.ts";
import type { Governance } from "./governance.ts";

export interface OwnCallsOptions {
  config: Pick<Config, "mode">;
  /** The configuration as it is now. */
  current(): Pick<ReloadableConfig, "limits">;
  governance: Pick<Governance, "keys" | "accounts">;
  inference: InferenceDeps;
  clock: Clock;
}

/** A first key that was replaced is followed by its successor within this time. */
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
 * All who ask while it is looked for share that. Once one was found nobody waits for the database: it is looked for again
 * behind who asks, and where that fails it is the last one.
 */
export function rememberedOperator(
  find: () => Promise<Operator | undefined>,
  clock: Pick<Clock, "monotonicMs">,
): () => Promise<Operator | undefined> {
  let known: Operator | undefined;
  let untilMs = 0;
  let looking: Promise<Operator | undefined> | undefined;
  const look = async () => {
    try {
      known = await find();
    } catch (error) {
      if (!known) throw error;
    } finally {
      looking = undefined;
    }
    untilMs = clock.monotonicMs() + rememberedMs;
    return known;
  };
  return async () => {
    if (known && clock.monotonicMs() < untilMs) return known;
    looking ??= look();
    return known ?? (await looking);
  };
}
