// The sections of headrace.yaml that features declare. To add a feature, add it to every definition in this file.
import { guardrailsSection as guardrails } from "../../features/guardrails/config.ts";

/** The schemas of the sections, by key. */
export const featureSchemas = { ...guardrails.schemas };

/** The keys of features that take effect without a restart. */
export const reloadableFeatureKeys = [...guardrails.reloadable];

type FeatureData = Parameters<typeof guardrails.settings>[0];
export type FeatureSettings = ReturnType<typeof guardrails.settings>;

export const featureSettings = (data: FeatureData): FeatureSettings => ({ ...guardrails.settings(data) });

/** Returns contradictions within these sections. Each path begins with the section's key. */
export const featureFaults = (data: FeatureData) => [...guardrails.faults(data)];

export const featureSecrets = (settings: FeatureSettings) => [...guardrails.secrets(settings)];
