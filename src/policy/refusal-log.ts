// Puts refused credentials into the audit log, in the background and bounded: a flood of them ends as one row that counts.
import type { AuditActor, AuditEvent, AuditLog } from "../domain/audit.ts";
import type { Clock } from "../domain/clock.ts";
import type { Log } from "../domain/log.ts";
import { auditEvent } from "./audit.ts";

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

const defaultFlushMs = 1_000;
const windowMs = 60_000;
/** Rows of each kind in a window; what is beyond is counted by reason. */
const maxRows = 100;
/** Rows that wait for an audit log that cannot be written; more are given up. */
const maxPending = 1_000;

export class RefusalLog {
  readonly #options: RefusalLogOptions;
  #pending: AuditEvent[] = [];
  #suppressed = new Map<string, number>();
  #windowStartMs = Number.NEGATIVE_INFINITY;
  /** Of keys that exist, and of anybody: a flood of made-up ones must not hide the use of a revoked one. */
  #rows = { known: 0, unknown: 0 };
  #failing = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: RefusalLogOptions) {
    this.#options = options;
  }

  record(refusal: Refusal): void {
    this.#turnWindow();
    const kind = refusal.keyId === null ? "unknown" : "known";
    if (this.#rows[kind] < maxRows) {
      this.#rows[kind]++;
      this.#pending.push(this.#row(refusal));
    } else {
      this.#suppressed.set(refusal.reason, (this.#suppressed.get(refusal.reason) ?? 0) + 1);
    }
    this.#schedule();
  }

  /** Writes what is pending, the count of the suppressed ones where their window is over. Never rejects. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#turnWindow();
    return this.#write();
  }

  /** The count as well. */
  close(): Promise<void> {
    this.#windowStartMs = Number.NEGATIVE_INFINITY;
    return this.flush();
  }

  #turnWindow(): void {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - this.#windowStartMs < windowMs) return;
    if (this.#suppressed.size > 0) this.#pending.push(this.#summary());
    this.#suppressed = new Map();
    this.#windowStartMs = nowMs;
    this.#rows = { known: 0, unknown: 0 };
  }

  #row({ reason, keyId, accountId, clientAddress, requestId }: Refusal): AuditEvent {
    const actor: AuditActor = keyId === null ? { type: "system" } : { type: "key", id: keyId };
    const origin = { nowSeconds: this.#options.clock.nowSeconds(), clientAddress, requestId };
    return auditEvent("credential.refused", actor, origin, { accountId, targetId: keyId, detail: { reason } });
  }

  #summary(): AuditEvent {
    const reasons = Object.fromEntries(this.#suppressed);
    const suppressed = [...this.#suppressed.values()].reduce((sum, count) => sum + count, 0);
    const origin = { nowSeconds: this.#options.clock.nowSeconds(), clientAddress: null, requestId: null };
    const detail = { reason: "suppressed", suppressed, reasons };
    return auditEvent("credential.refused", { type: "system" }, origin, { accountId: null, targetId: null, detail });
  }

  #schedule(): void {
    if (this.#timer || (this.#pending.length === 0 && this.#suppressed.size === 0)) return;
    const flushMs = this.#options.flushMs ?? defaultFlushMs;
    this.#timer = setTimeout(() => void this.flush().then(() => this.#schedule()), flushMs);
    this.#timer.unref();
  }

  #write(): Promise<void> {
    const batch = this.#pending;
    this.#pending = [];
    if (batch.length > 0) this.#writing = this.#writing.then(() => this.#append(batch));
    return this.#writing;
  }

  async #append(batch: readonly AuditEvent[]): Promise<void> {
    try {
      await this.#options.audit.append(batch);
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) this.#options.log.warn("refusals_not_audited", { detail: String(error), rows: batch.length });
      this.#failing = true;
      this.#pending = [...batch, ...this.#pending].slice(0, maxPending);
    }
  }
}
