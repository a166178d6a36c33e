// The type of an optional feature. A feature is a folder with files of fixed names: `config.ts` is read by
// src/config, `routes.ts` by src/http/routes.ts, and `command.ts` by src/cli.
import type { ReloadableConfig } from "../config/config.ts";
import type { InferenceDeps } from "../inference/call.ts";
import type { OwnCalls } from "../inference/own-calls.ts";
import type { Exposition } from "../metrics/exposition.ts";

/** The parts of request processing that features provide. */
export type Stages = Pick<InferenceDeps, "guardrails">;

export interface FeatureContext {
  readonly ownCalls: OwnCalls;
  /** Returns the current configuration, which a reload replaces. */
  current(): ReloadableConfig;
}

export interface OpenFeature {
  readonly stages?: Stages;
  /**
   * Writes the feature's metrics. Counters are written from the start with zero, so that rates are correct from
   * the first event.
   */
  writeMetrics?(out: Exposition): void;
  /** Loads the code that a new configuration needs, before that configuration is used. */
  prepare?(config: ReloadableConfig): Promise<void>;
}

export interface Feature {
  readonly name: string;
  /** Opens the feature. Its service code is loaded later by `prepare`, if the configuration uses the feature. */
  open(context: FeatureContext): OpenFeature;
}
