// The port of guardrails: what looks at a request before its model gets it, and at the answer before its client does.
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../base/cancellation.ts";
import { GatewayError } from "../base/errors.ts";
import type { Model } from "../domain/models/model.ts";
import type { Priority } from "../domain/models/policies/priority.ts";
import type { GuardrailAction, GuardrailSide } from "../features/guardrails/model.ts";
import type { DecodedRequest } from "../requests/decoded-request.ts";
import type { TextGuard } from "../requests/dialects/texts/text-guard.ts";

/** The code of a blocked answer in the ledger, where the answer was served as far as it was let through. */
export const blockedCode = "content_blocked";

export interface GuardedCall {
  readonly requestId: string;
  /** Public id of the model. */
  readonly model: string;
  readonly memoryAccount: MemoryAccount;
  /** Cancelled when the client leaves. */
  readonly left: Cancellation;
  /** Whether only local deployments may be asked about it. */
  readonly neverLeaves: boolean;
  /** Whoever is asked about it is asked as urgently. */
  readonly priority: Priority;
}

/** What was found once or several times: never the text. */
export interface Finding {
  readonly guardrail: string;
  /** Name of the rule or pattern; of a judge or a service its kind. */
  readonly rule: string;
  readonly side: GuardrailSide;
  readonly action: GuardrailAction;
  readonly count: number;
}

/** For one request. */
export interface Guarding {
  /** Those that look at it. */
  readonly names: readonly string[];
  /** The request as its model may see it; undefined: as it is. Rejects with `content_blocked`. */
  ofRequest(request: DecodedRequest): Promise<DecodedRequest | undefined>;
  /** Undefined where none of them looks at answers. */
  readonly answer: TextGuard | undefined;
  readonly findings: readonly Finding[];
}

export interface Guardrails {
  /** `names`: of the model's guardrails. Throws where one of them is not there: nothing is served without it. */
  begin(names: readonly string[], call: GuardedCall): Guarding;
}

/** Those of the model that was asked for, and of the one that answers in its place; undefined where neither has some. */
export function guardrailsOf(asked: Model, model: Model): readonly string[] | undefined {
  const own = model.policies?.guardrails;
  if (asked === model) return own;
  const first = asked.policies?.guardrails;
  return own && first ? [...new Set([...first, ...own])] : (own ?? first);
}

/** Whether all guardrails of a model have looked at a request already: else it is not sent there. */
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
