// Writes failed sign-ins to the audit log, in limited numbers. Unknown addresses are not stored.

import type { Clock } from "../base/clock.ts";
import type { Passkey } from "../domain/people/person.ts";
import { auditEvent, type Origin } from "../policy/records/audit.ts";
import { BoundedAudit, type BoundedAuditOptions } from "../policy/records/bounded-audit.ts";
import type { BrowserOrigin } from "./browser-sessions.ts";

export type FailedSignInsOptions = Pick<BoundedAuditOptions, "audit" | "clock" | "log" | "flushMs">;

/** The reason of a failure. The typed text is never stored, because people type passwords into the address field. */
export type SignInFault = "unknown_email" | "wrong_password" | "no_password" | "throttled";
export type PasskeyFault = "not_verified" | "counter_went_back" | "ended_meanwhile";

type Detail = { method: "password" } | { method: "passkey"; passkey: string };

export class FailedSignIns extends BoundedAudit {
  readonly #clock: Clock;

  constructor(options: FailedSignInsOptions) {
    super({ ...options, action: "sign_in.failed", faultName: "failed_sign_ins_not_audited" });
    this.#clock = options.clock;
  }

  /** Records a failure. `personId` is the person whose address was entered, or null if the address is unknown. */
  record(reason: SignInFault, personId: string | null, origin: BrowserOrigin): void {
    this.#record(personId, { reason, method: "password" }, origin);
  }

  /** Records the failed use of a registered passkey. The passkey may have been copied. */
  recordPasskey(reason: PasskeyFault, { id, personId }: Passkey, origin: Origin): void {
    this.#record(personId, { reason, method: "passkey", passkey: id }, origin);
  }

  #record(
    personId: string | null,
    detail: Detail & { reason: string },
    { clientAddress, requestId }: Pick<Origin, "clientAddress" | "requestId">,
  ): void {
    this.add(personId === null ? "unknown" : "known", detail.reason, () => {
      const origin = { nowSeconds: this.#clock.nowSeconds(), clientAddress, requestId };
      const about = { accountId: null, targetId: personId, detail };
      return auditEvent("sign_in.failed", { type: "anonymous" }, origin, about);
    });
  }
}
