// The sections of headrace.yaml that features declare. A feature adds itself to each of these lines.
import { guardrailsSection as guardrails } from "../../features/guardrails/config.ts";

/** Schemas by key of the file. */
export const featureSchemas = { ...guardrails.schemas };

/** Keys that a running server takes over without a restart. */
export const reloadableFeatureKeys = [...guardrails.reloadable];

type FeatureData = Parameters<typeof guardrails.settings>[0];
export type FeatureSettings = ReturnType<typeof guardrails.settings>;

export const featureSettings = (data: FeatureData): FeatureSettings => ({ ...guardrails.settings(data) });

/** Contradictions within the sections. Paths begin at the key. */
export const featureFaults = (data: FeatureData) => [...guardrails.faults(data)];

export const featureSecrets = (settings: FeatureSettings) => [...guardrails.secrets(settings)];
