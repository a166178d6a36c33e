// Puts failed sign-ins into the audit log, bounded; of an address that nobody has, not even the address.

import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { AuditLog } from "../domain/audit.ts";
import type { Passkey } from "../domain/people/person.ts";
import { auditEvent, type Origin } from "../policy/records/audit.ts";
import { BoundedAudit } from "../policy/records/bounded-audit.ts";
import type { BrowserOrigin } from "./browser-sessions.ts";

export interface FailedSignInsOptions {
  audit: Pick<AuditLog, "append">;
  clock: Clock;
  log: Log;
  flushMs?: number;
}

/** People type passwords where the address belongs: nothing that was sent is kept. */
export type SignInFault = "unknown_email" | "wrong_password" | "no_password" | "throttled";
export type PasskeyFault = "not_verified" | "counter_went_back" | "ended_meanwhile";

type Detail = { method: "password" } | { method: "passkey"; passkey: string };

export class FailedSignIns {
  readonly #clock: Clock;
  readonly #rows: BoundedAudit;

  constructor(options: FailedSignInsOptions) {
    this.#clock = options.clock;
    this.#rows = new BoundedAudit({
      ...options,
      faultName: "failed_sign_ins_not_audited",
      summary: (detail) => {
        const origin = { nowSeconds: options.clock.nowSeconds(), clientAddress: null, requestId: null };
        return auditEvent("sign_in.failed", { type: "system" }, origin, { accountId: null, targetId: null, detail });
      },
    });
  }

  /** `personId`: who it would have been; null where that is not known. */
  record(reason: SignInFault, personId: string | null, origin: BrowserOrigin): void {
    this.#record(personId, { reason, method: "password" }, origin);
  }

  /** A passkey that is known and yet does not fit: somebody tries something, or has copied it. */
  recordPasskey(reason: PasskeyFault, { id, personId }: Passkey, origin: Origin): void {
    this.#record(personId, { reason, method: "passkey", passkey: id }, origin);
  }

  #record(
    personId: string | null,
    detail: Detail & { reason: string },
    { clientAddress, requestId }: Pick<Origin, "clientAddress" | "requestId">,
  ): void {
    this.#rows.record(personId === null ? "unknown" : "known", detail.reason, () => {
      const origin = { nowSeconds: this.#clock.nowSeconds(), clientAddress, requestId };
      return auditEvent("sign_in.failed", { type: "anonymous" }, origin, {
        accountId: null,
        targetId: personId,
        detail,
      });
    });
  }

  /** Rows that wait to be written, and how many were given up. */
  get figures(): { pending: number; lost: number } {
    return { pending: this.#rows.pending, lost: this.#rows.lost };
  }

  /** Never rejects. */
  flush(): Promise<void> {
    return this.#rows.flush();
  }

  close(): Promise<void> {
    return this.#rows.close();
  }
}
