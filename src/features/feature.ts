// The declaration of a feature: the names by which composition opens it. The other parts of a feature are files with
// fixed names, and each is read by one layer: `config.ts` by src/config, `routes.ts` by src/http/routes.ts,
// `command.ts` by src/cli.
import type { ReloadableConfig } from "../config/config.ts";
import type { InferenceDeps } from "../inference/call.ts";
import type { OwnCalls } from "../inference/own-calls.ts";
import type { Exposition } from "../metrics/exposition.ts";

/** The stages of a request that features fill. A request that needs no stage only tests a policy for `undefined`. */
export type Stages = Pick<InferenceDeps, "guardrails">;

export interface FeatureContext {
  readonly ownCalls: OwnCalls;
  /** Returns the configuration in use; a reload replaces it. */
  current(): ReloadableConfig;
}

export interface OpenFeature {
  readonly stages?: Stages;
  /** Writes the metrics. A counter is written from the start, so that its rate is known from the first event on. */
  writeMetrics?(out: Exposition): void;
  /** Loads the code that the configuration needs, before the configuration is used. */
  prepare?(config: ReloadableConfig): Promise<void>;
}

export interface Feature {
  readonly name: string;
  /** Opens the feature without its service, which `prepare` loads if the configuration uses the feature. */
  open(context: FeatureContext): OpenFeature;
}
