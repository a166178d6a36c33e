// Guardrails check requests before a model receives them, and answers before the client does.
import { GatewayError } from "../../base/errors.ts";

export const guardrailKinds = ["patterns", "secrets", "judge", "http"] as const;
export const guardrailSides = ["request", "answer"] as const;
export type GuardrailSide = (typeof guardrailSides)[number];
/** `block` refuses the request or ends the answer, `mask` replaces the found text, `note` only counts the finding. */
export const guardrailActions = ["block", "mask", "note"] as const;
export type GuardrailAction = (typeof guardrailActions)[number];

/** The pattern equals the pattern of upstream names, because logs, metrics and answers show both. */
export const guardrailNamePattern = /^[a-z0-9][a-z0-9._-]{0,62}$/;
export const guardrailNameText =
  "1 to 63 lower-case letters, digits, dots, underscores or hyphens, beginning with a letter or digit";

interface Guardrail {
  /** Unique name, by which policies of models refer to the guardrail. */
  readonly name: string;
  readonly sides: readonly GuardrailSide[];
  readonly action: GuardrailAction;
}

/** Patterns that the operator wrote, matched in time linear in the text. */
export interface PatternGuardrail extends Guardrail {
  readonly kind: "patterns";
  /** The name of a pattern replaces the text that the pattern masks. */
  readonly patterns: readonly { readonly name: string; readonly pattern: string }[];
}

/** A maintained set of rules for credentials and personal data. */
export interface SecretsGuardrail extends Guardrail {
  readonly kind: "secrets";
  /** Names of groups of rules. Empty: all groups. */
  readonly rules: readonly string[];
}

/** A model of the gateway that decides whether a text may pass. A judge cannot mask. */
export interface JudgeGuardrail extends Guardrail {
  readonly kind: "judge";
  /** Public id of the model. */
  readonly model: string;
  /** The rules that the model applies, in words. */
  readonly policy: string;
  readonly timeoutMs: number;
  /** Verdict if the model does not answer in time, or gives an unreadable answer. */
  readonly otherwise: "pass" | "block";
}

/** An HTTP service of the operator. */
export interface HttpGuardrail extends Guardrail {
  readonly kind: "http";
  readonly url: string;
  /** The bearer token, sealed or from the environment. */
  readonly token: string | null;
  /** True if the service may receive texts of requests that must not leave. */
  readonly local: boolean;
  readonly timeoutMs: number;
  readonly otherwise: "pass" | "block";
}

export type GuardrailSettings = PatternGuardrail | SecretsGuardrail | JudgeGuardrail | HttpGuardrail;

/** The error for a model that names a guardrail which the configuration does not have. */
export function missingGuardrail(name: string): GatewayError {
  const message = "A guardrail of this model is not configured any more: nothing is served without it.";
  return new GatewayError("service_unavailable", message, { detail: `guardrail ${name}` });
}
