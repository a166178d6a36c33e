// Settings of guardrails, which check requests before a model receives them and answers before the client does.
import { GatewayError } from "../../base/errors.ts";

export const guardrailKinds = ["patterns", "secrets", "judge", "http"] as const;
export const guardrailSides = ["request", "answer"] as const;
export type GuardrailSide = (typeof guardrailSides)[number];
/** `block` refuses the request or ends the answer, `mask` replaces the found text, `note` only counts the finding. */
export const guardrailActions = ["block", "mask", "note"] as const;
export type GuardrailAction = (typeof guardrailActions)[number];

/** The same pattern as for upstream names, because logs, metrics and answers show the names of both. */
export const guardrailNamePattern = /^[a-z0-9][a-z0-9._-]{0,62}$/;
export const guardrailNameText =
  "1 to 63 lower-case letters, digits, dots, underscores or hyphens, beginning with a letter or digit";

interface Guardrail {
  /** Unique name, by which the settings of a model refer to the guardrail. */
  readonly name: string;
  readonly sides: readonly GuardrailSide[];
  readonly action: GuardrailAction;
}

/** A guardrail with the operator's own patterns, matched in time linear in the text. */
export interface PatternGuardrail extends Guardrail {
  readonly kind: "patterns";
  /** The patterns. A masked match is replaced by the name of its pattern. */
  readonly patterns: readonly { readonly name: string; readonly pattern: string }[];
}

/** A guardrail with built-in rules for credentials and personal data. */
export interface SecretsGuardrail extends Guardrail {
  readonly kind: "secrets";
  /** Names of groups of built-in rules. Empty: all groups. */
  readonly rules: readonly string[];
}

/** A guardrail in which a model of the gateway decides whether a text may pass. It cannot mask texts. */
export interface JudgeGuardrail extends Guardrail {
  readonly kind: "judge";
  /** Public id of the deciding model. */
  readonly model: string;
  /** Instructions for the deciding model: what to block. */
  readonly policy: string;
  readonly timeoutMs: number;
  /** The verdict if the model gives no valid answer in time. */
  readonly otherwise: "pass" | "block";
}

/** A guardrail that asks an HTTP service of the operator. */
export interface HttpGuardrail extends Guardrail {
  readonly kind: "http";
  readonly url: string;
  /** The bearer token for the service, encrypted or from the environment. */
  readonly token: string | null;
  /** True if the service may get texts of requests that are restricted to local deployments. */
  readonly local: boolean;
  readonly timeoutMs: number;
  readonly otherwise: "pass" | "block";
}

export type GuardrailSettings = PatternGuardrail | SecretsGuardrail | JudgeGuardrail | HttpGuardrail;

/** The error for a model that refers to a guardrail that is not configured. */
export function missingGuardrail(name: string): GatewayError {
  const message = "A guardrail of this model is not configured any more: nothing is served without it.";
  return new GatewayError("service_unavailable", message, { detail: `guardrail ${name}` });
}
