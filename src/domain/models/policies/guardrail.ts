// What looks at requests before a model gets them, and at answers before their client does.

export const guardrailKinds = ["patterns", "secrets", "judge", "http"] as const;
export const guardrailSides = ["request", "answer"] as const;
export type GuardrailSide = (typeof guardrailSides)[number];
/** `block`: refused, or ended; `mask`: what was found is replaced; `note`: counted, and passed on. */
export const guardrailActions = ["block", "mask", "note"] as const;
export type GuardrailAction = (typeof guardrailActions)[number];

/** The same as of an upstream: it stands in logs, metrics and answers. */
export const guardrailNamePattern = /^[a-z0-9][a-z0-9._-]{0,62}$/;
export const guardrailNameText =
  "1 to 63 lower-case letters, digits, dots, underscores or hyphens, beginning with a letter or digit";

interface Guardrail {
  /** Unique; models name it. */
  readonly name: string;
  readonly sides: readonly GuardrailSide[];
  readonly action: GuardrailAction;
}

/** Patterns of the operator's own; matched in time linear in the text. */
export interface PatternGuardrail extends Guardrail {
  readonly kind: "patterns";
  /** What stands in place of what was found, by the name of the pattern. */
  readonly patterns: readonly { readonly name: string; readonly pattern: string }[];
}

/** A maintained set of rules for credentials and personal data. */
export interface SecretsGuardrail extends Guardrail {
  readonly kind: "secrets";
  /** Names of groups of rules; empty: all of them. */
  readonly rules: readonly string[];
}

/** A model of the gateway that is asked whether a text may pass. Cannot mask. */
export interface JudgeGuardrail extends Guardrail {
  readonly kind: "judge";
  /** Public id of the model. */
  readonly model: string;
  /** What it is told to look for. */
  readonly policy: string;
  readonly timeoutMs: number;
  /** What happens where it does not answer in time, or not as it should. */
  readonly otherwise: "pass" | "block";
}

/** An HTTP service of the operator's own. */
export interface HttpGuardrail extends Guardrail {
  readonly kind: "http";
  readonly url: string;
  /** An operator's word that nothing that is sent there goes further: else what must not leave is not sent there. */
  readonly local: boolean;
  /** Sealed or from the environment; sent as a bearer token, where there is one. */
  readonly token: string | null;
  readonly timeoutMs: number;
  readonly otherwise: "pass" | "block";
}

export type GuardrailSettings = PatternGuardrail | SecretsGuardrail | JudgeGuardrail | HttpGuardrail;
