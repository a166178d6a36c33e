// Writes audit events that anybody can cause, in the background. A flood of such events becomes one row with a count.

import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { AuditAction, AuditEvent, AuditLog } from "../../domain/audit.ts";
import { auditEvent } from "./audit.ts";

export interface BoundedAuditOptions {
  audit: Pick<AuditLog, "append">;
  clock: Clock;
  log: Log;
  /** Name of the log event for failed writes. */
  faultName: string;
  /** The action of the row that counts the events left out in a minute. */
  action: AuditAction;
  flushMs?: number;
}

const defaultFlushMs = 1_000;
const windowMs = 60_000;
/** Maximum rows of each kind in a window. Further events are counted by reason. */
const maxRows = 100;
/** Maximum rows that wait while the audit log cannot be written. Further rows are dropped. */
const maxPending = 1_000;

export class BoundedAudit {
  readonly #options: BoundedAuditOptions;
  #pending: AuditEvent[] = [];
  #suppressed = new Map<string, number>();
  #windowStartMs = Number.NEGATIVE_INFINITY;
  /**
   * Number of rows about existing objects, and about unknown ones: a flood of made-up names must not hide events of
   * existing objects.
   */
  #rows = { known: 0, unknown: 0 };
  #failing = false;
  #inWriting = 0;
  #lost = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: BoundedAuditOptions) {
    this.#options = options;
  }

  /** Number of rows that wait for a write, and of dropped rows. */
  get figures(): { pending: number; lost: number } {
    return { pending: this.#pending.length + this.#inWriting, lost: this.#lost };
  }

  /** Adds an event. `reason` is one of a few fixed words, by which suppressed events are counted. */
  add(kind: "known" | "unknown", reason: string, row: () => AuditEvent): void {
    this.#turnWindow();
    if (this.#rows[kind] < maxRows) {
      this.#rows[kind]++;
      this.#pending.push(row());
    } else {
      this.#suppressed.set(reason, (this.#suppressed.get(reason) ?? 0) + 1);
    }
    this.#schedule();
  }

  /** Writes pending rows, and the count of suppressed events if their window is over. Never rejects. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#turnWindow();
    return this.#write();
  }

  /** Writes pending rows, and the count of suppressed events. */
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

  #summary(): AuditEvent {
    const reasons = Object.fromEntries(this.#suppressed);
    const suppressed = [...this.#suppressed.values()].reduce((sum, count) => sum + count, 0);
    const { action, clock } = this.#options;
    const origin = { nowSeconds: clock.nowSeconds(), clientAddress: null, requestId: null };
    const detail = { reason: "suppressed", suppressed, reasons };
    return auditEvent(action, { type: "system" }, origin, { accountId: null, targetId: null, detail });
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
    this.#inWriting += batch.length;
    if (batch.length > 0) this.#writing = this.#writing.then(() => this.#append(batch));
    return this.#writing;
  }

  async #append(batch: readonly AuditEvent[]): Promise<void> {
    const { audit, log, faultName } = this.#options;
    try {
      await audit.append(batch);
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) log.warn(faultName, { detail: String(error), rows: batch.length });
      this.#failing = true;
      const waiting = [...batch, ...this.#pending];
      this.#pending = waiting.slice(0, maxPending);
      this.#lost += waiting.length - this.#pending.length;
    }
    this.#inWriting -= batch.length;
  }
}
