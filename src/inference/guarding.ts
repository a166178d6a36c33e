// The interface of guardrails. They check requests before a model gets them, and answers before a client gets them.
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../base/cancellation.ts";
import { GatewayError } from "../base/errors.ts";
import type { Model } from "../domain/models/model.ts";
import type { Priority } from "../domain/models/policies/priority.ts";
import type { GuardrailAction, GuardrailSide } from "../features/guardrails/model.ts";
import type { DecodedRequest } from "../requests/decoded-request.ts";
import type { TextGuard } from "../requests/dialects/texts/text-guard.ts";

/** The ledger's code for an answer that a guardrail ended after a part was sent. */
export const blockedCode = "content_blocked";

export interface GuardedCall {
  readonly requestId: string;
  /** Public id of the requested model. */
  readonly model: string;
  readonly memoryAccount: MemoryAccount;
  /** Cancelled when the client leaves. */
  readonly clientGone: Cancellation;
  /** True if the request may only be sent to local deployments. */
  readonly neverLeaves: boolean;
  /** Priority of model calls that check the text. */
  readonly priority: Priority;
}

/** Describes how often a guardrail's rule matched, without the matched text. */
export interface Finding {
  readonly guardrail: string;
  /** Name of the rule or pattern. If the guardrail asks a model or service, its kind. */
  readonly rule: string;
  readonly side: GuardrailSide;
  readonly action: GuardrailAction;
  readonly count: number;
}

/** The guardrails of a single request, with their findings. */
export interface Guarding {
  /** Names of the request's guardrails. */
  readonly names: readonly string[];
  /**
   * Checks the request. Returns a masked request, or undefined if nothing changed. Rejects with `content_blocked` if a
   * guardrail blocks the request.
   */
  ofRequest(request: DecodedRequest): Promise<DecodedRequest | undefined>;
  /** Checks the answer. Undefined if no guardrail checks answers. */
  readonly answer: TextGuard | undefined;
  readonly findings: readonly Finding[];
}

export interface Guardrails {
  /** Returns the named guardrails for a call. Throws if one is missing, because a request must not skip a guardrail. */
  begin(names: readonly string[], call: GuardedCall): Guarding;
}

/**
 * Returns the names of the guardrails of both models: the one that was requested, and the one that answers instead.
 * Returns undefined if there are none.
 */
export function guardrailsOf(asked: Model, model: Model): readonly string[] | undefined {
  const own = model.policies?.guardrails;
  if (asked === model) return own;
  const first = asked.policies?.guardrails;
  return own && first ? [...new Set([...first, ...own])] : (own ?? first);
}

/** Reports whether `names` include all guardrails of the model. If not, the request must not go to that model. */
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
