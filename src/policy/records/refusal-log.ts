// Puts refused credentials into the audit log, bounded.

import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { AuditActor, AuditEvent, AuditLog } from "../../domain/audit.ts";
import { auditEvent } from "./audit.ts";
import { BoundedAudit } from "./bounded-audit.ts";

export interface Refusal {
  /** One of a few words, never anything that the client sent. */
  reason: string;
  /** Null where the credential is nobody's. */
  keyId: string | null;
  accountId: string | null;
  clientAddress: string;
  requestId: string;
}

export interface RefusalLogOptions {
  audit: Pick<AuditLog, "append">;
  clock: Clock;
  log: Log;
  flushMs?: number;
}

export class RefusalLog {
  readonly #clock: Clock;
  readonly #rows: BoundedAudit;

  constructor(options: RefusalLogOptions) {
    this.#clock = options.clock;
    this.#rows = new BoundedAudit({
      ...options,
      faultName: "refusals_not_audited",
      summary: (detail) => {
        const origin = { nowSeconds: options.clock.nowSeconds(), clientAddress: null, requestId: null };
        const about = { accountId: null, targetId: null, detail };
        return auditEvent("credential.refused", { type: "system" }, origin, about);
      },
    });
  }

  record(refusal: Refusal): void {
    this.#rows.record(refusal.keyId === null ? "unknown" : "known", refusal.reason, () => this.#row(refusal));
  }

  /** Rows that wait to be written, and how many were given up. */
  get figures(): { pending: number; lost: number } {
    return { pending: this.#rows.pending, lost: this.#rows.lost };
  }

  /** Writes what is pending, the count of the suppressed ones where their window is over. Never rejects. */
  flush(): Promise<void> {
    return this.#rows.flush();
  }

  /** The count as well. */
  close(): Promise<void> {
    return this.#rows.close();
  }

  #row({ reason, keyId, accountId, clientAddress, requestId }: Refusal): AuditEvent {
    const actor: AuditActor = keyId === null ? { type: "system" } : { type: "key", id: keyId };
    const origin = { nowSeconds: this.#clock.nowSeconds(), clientAddress, requestId };
    return auditEvent("credential.refused", actor, origin, { accountId, targetId: keyId, detail: { reason } });
  }
}
