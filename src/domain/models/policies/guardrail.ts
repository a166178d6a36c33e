// Guardrails, which check requests before a model receives them, and answers before the client does.

export const guardrailKinds = ["patterns", "secrets", "judge", "http"] as const;
export const guardrailSides = ["request", "answer"] as const;
export type GuardrailSide = (typeof guardrailSides)[number];
/** `block`: refuse the request or end the answer; `mask`: replace the finding; `note`: count it and pass it on. */
export const guardrailActions = ["block", "mask", "note"] as const;
export type GuardrailAction = (typeof guardrailActions)[number];

/** The same rule as for upstreams, because the name appears in logs, metrics and answers. */
export const guardrailNamePattern = /^[a-z0-9][a-z0-9._-]{0,62}$/;
export const guardrailNameText =
  "1 to 63 lower-case letters, digits, dots, underscores or hyphens, beginning with a letter or digit";

interface Guardrail {
  /** Unique; models refer to it. */
  readonly name: string;
  readonly sides: readonly GuardrailSide[];
  readonly action: GuardrailAction;
}

/** The operator's own patterns, matched in linear time. */
export interface PatternGuardrail extends Guardrail {
  readonly kind: "patterns";
  /** Patterns with the names that replace masked text. */
  readonly patterns: readonly { readonly name: string; readonly pattern: string }[];
}

/** The built-in rules for credentials and personal data. */
export interface SecretsGuardrail extends Guardrail {
  readonly kind: "secrets";
  /** Names of groups of rules; empty: all. */
  readonly rules: readonly string[];
}

/** A model of the gateway that decides whether a text may pass. It cannot mask. */
export interface JudgeGuardrail extends Guardrail {
  readonly kind: "judge";
  /** Public id of the model. */
  readonly model: string;
  /** The instruction of the judge. */
  readonly policy: string;
  readonly timeoutMs: number;
  /** The decision after a timeout or an invalid answer. */
  readonly otherwise: "pass" | "block";
}

/** The operator's own HTTP service. */
export interface HttpGuardrail extends Guardrail {
  readonly kind: "http";
  readonly url: string;
  /** Sealed or from the environment; sent as a bearer token. null: none. */
  readonly token: string | null;
  /** True if texts of keys with `never_leaves` may be sent there. */
  readonly local: boolean;
  readonly timeoutMs: number;
  readonly otherwise: "pass" | "block";
}

export type GuardrailSettings = PatternGuardrail | SecretsGuardrail | JudgeGuardrail | HttpGuardrail;
