// Writes refused credentials to the audit log, in limited numbers.

import type { Clock } from "../../base/clock.ts";
import type { AuditActor, AuditEvent } from "../../domain/audit.ts";
import { auditEvent } from "./audit.ts";
import { BoundedAudit, type BoundedAuditOptions } from "./bounded-audit.ts";

export interface Refusal {
  /** The reason: one of a few words, never anything that the client sent. */
  reason: string;
  /** Id of the key; null if the credential is unknown. */
  keyId: string | null;
  accountId: string | null;
  clientAddress: string;
  requestId: string;
}

export type RefusalLogOptions = Pick<BoundedAuditOptions, "audit" | "clock" | "log" | "flushMs">;

export class RefusalLog extends BoundedAudit {
  readonly #clock: Clock;

  constructor(options: RefusalLogOptions) {
    super({ ...options, action: "credential.refused", faultName: "refusals_not_audited" });
    this.#clock = options.clock;
  }

  record(refusal: Refusal): void {
    this.add(refusal.keyId === null ? "unknown" : "known", refusal.reason, () => this.#row(refusal));
  }

  #row({ reason, keyId, accountId, clientAddress, requestId }: Refusal): AuditEvent {
    const actor: AuditActor = keyId === null ? { type: "system" } : { type: "key", id: keyId };
    const origin = { nowSeconds: this.#clock.nowSeconds(), clientAddress, requestId };
    return auditEvent("credential.refused", actor, origin, { accountId, targetId: keyId, detail: { reason } });
  }
}
