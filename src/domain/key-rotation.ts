// The scheduled rotation of keys: a schedule for one key, or for all keys of an account.
import type { AuditEvent } from "./audit.ts";

export interface KeyRotation {
  /** Days from the creation of a key until its rotation is due. */
  everyDays: number;
  /** Seconds for which the old key still works after its rotation is due. */
  overlapSeconds: number;
}

export interface KeyRotationStore {
  /**
   * Returns the schedule of a key or an account. `subject` is the limit id that a key shares with its successors, or the
   * id of the account.
   */
  find(subject: string): Promise<KeyRotation | undefined>;
  /** Sets or, with undefined, removes a schedule, and writes the audit event. */
  set(subject: string, rotation: KeyRotation | undefined, event: AuditEvent): Promise<void>;
  /**
   * Ends the key at `endsAt`. Until then, its successor can be fetched once. Returns false if the key has ended or is
   * ending already, so that only one of several processes begins a rotation. Also returns false for an operator's key
   * without a schedule of its own.
   */
  begin(keyId: string, endsAt: number, event: AuditEvent): Promise<boolean>;
  /** Reports whether a rotation of the key has begun and its successor was not fetched. */
  isDue(keyId: string): Promise<boolean>;
}
