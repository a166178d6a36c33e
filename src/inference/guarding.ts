// The interface of guardrails, which check a request before its model gets it, and an answer before its client does.
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../base/cancellation.ts";
import { GatewayError } from "../base/errors.ts";
import type { Model } from "../domain/models/model.ts";
import type { Priority } from "../domain/models/policies/priority.ts";
import type { GuardrailAction, GuardrailSide } from "../features/guardrails/model.ts";
import type { DecodedRequest } from "../requests/decoded-request.ts";
import type { TextGuard } from "../requests/dialects/texts/text-guard.ts";

/** Error code in the ledger of a blocked answer, the beginning of which was served. */
export const blockedCode = "content_blocked";

export interface GuardedCall {
  readonly requestId: string;
  /** Public id of the model. */
  readonly model: string;
  readonly memoryAccount: MemoryAccount;
  /** Cancelled when the client leaves. */
  readonly clientGone: Cancellation;
  /** True if only local deployments may be asked about the text. */
  readonly neverLeaves: boolean;
  /** Priority of calls that check the text. */
  readonly priority: Priority;
}

/** A finding and how often it occurred, without the text. */
export interface Finding {
  readonly guardrail: string;
  /** Name of the rule or pattern; for a judge or a service its kind. */
  readonly rule: string;
  readonly side: GuardrailSide;
  readonly action: GuardrailAction;
  readonly count: number;
}

/** The guardrails of one request. */
export interface Guarding {
  /** Names of the guardrails. */
  readonly names: readonly string[];
  /** Returns the request as its model may see it; undefined if it is unchanged. Rejects with `content_blocked`. */
  ofRequest(request: DecodedRequest): Promise<DecodedRequest | undefined>;
  /** Undefined if none of the guardrails checks answers. */
  readonly answer: TextGuard | undefined;
  readonly findings: readonly Finding[];
}

export interface Guardrails {
  /** Starts the guardrails with these names. Throws if one is missing, because no request is served without it. */
  begin(names: readonly string[], call: GuardedCall): Guarding;
}

/**
 * Returns the guardrails of the requested model and of the model that answers in its place; undefined if neither has
 * any.
 */
export function guardrailsOf(asked: Model, model: Model): readonly string[] | undefined {
  const own = model.policies?.guardrails;
  if (asked === model) return own;
  const first = asked.policies?.guardrails;
  return own && first ? [...new Set([...first, ...own])] : (own ?? first);
}

/**
 * Reports whether all guardrails of a model have checked a request. Otherwise the request is not sent to that model.
 */
export function isCovered({ policies }: Model, names: readonly string[] | undefined): boolean {
  const own = policies?.guardrails;
  return own === undefined || own.every((name) => names?.includes(name));
}

export function beginGuarding(
  guardrails: Guardrails | undefined,
  names: readonly string[],
  call: GuardedCall,
): Guarding {
  if (guardrails) return guardrails.begin(names, call);
  throw new GatewayError("service_unavailable", "Nobody is here who looks at requests for this model as it wants it.");
}
