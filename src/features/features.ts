// The list of features, and the function that opens all of them.
import type { ReloadableConfig } from "../config/config.ts";
import type { Exposition } from "../metrics/exposition.ts";
import type { Feature, FeatureContext, Stages } from "./feature.ts";
import { guardrailsFeature } from "./guardrails/feature.ts";

const features: readonly Feature[] = [guardrailsFeature];

export interface OpenedFeatures {
  readonly stages: Stages;
  writeMetrics(out: Exposition): void;
  /** Loads the code that a configuration needs. Calls are processed one after another. */
  prepare(config: ReloadableConfig): Promise<void>;
}

export async function openFeatures(context: FeatureContext): Promise<OpenedFeatures> {
  const opened = features.map((feature) => feature.open(context));
  let prepared = Promise.resolve();
  const prepare = (config: ReloadableConfig) => {
    const next = prepared.then(async () => {
      for (const feature of opened) await feature.prepare?.(config);
    });
    // The caller of `prepare` gets the error of a failed load. The error must not stop later calls.
    prepared = next.catch(() => {});
    return next;
  };
  await prepare(context.current());
  return {
    stages: Object.assign({}, ...opened.map(({ stages }) => stages)),
    writeMetrics(out) {
      for (const feature of opened) feature.writeMetrics?.(out);
    },
    prepare,
  };
}
