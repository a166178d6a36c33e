// The port of guardrails: what looks at a request before its model gets it, and at the answer before its client does.
import type { Holder } from "../base/bytes/held-bytes.ts";
import type { Cancellation } from "../base/cancellation.ts";
import type { TextGuard } from "../dialects/texts/text-guard.ts";
import type { GuardrailAction, GuardrailSide } from "../domain/models/policies/guardrail.ts";
import type { Priority } from "../domain/models/policies/priority.ts";
import type { DecodedRequest } from "./decoded-request.ts";

/** The code of a blocked answer in the ledger, where the answer was served as far as it was let through. */
export const blockedCode = "content_blocked";

export interface GuardedCall {
  readonly requestId: string;
  /** Public id of the model. */
  readonly model: string;
  readonly holder: Holder;
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
