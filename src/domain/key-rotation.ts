// The scheduled rotation of keys: a schedule for one key, or for all keys of an account.
import type { AuditEvent } from "./audit.ts";

export interface KeyRotation {
  /** Days from the creation of a key until its rotation is due. */
  everyDays: number;
  /** Seconds from then on for which the old key still works. */
  overlapSeconds: number;
}

export interface KeyRotationStore {
  /** `subject`: the limit id of a key, which its successors share, or the id of an account. */
  find(subject: string): Promise<KeyRotation | undefined>;
  /** Sets or, with undefined, removes a schedule, and writes the audit event. */
  set(subject: string, rotation: KeyRotation | undefined, event: AuditEvent): Promise<void>;
  /**
   * Ends the key at `endsAt`, until when its successor can be fetched once. Returns false if the key has ended or is
   * ending already, so that only one of several processes begins a rotation, and for an operator's key without a
   * schedule of its own.
   */
  begin(keyId: string, endsAt: number, event: AuditEvent): Promise<boolean>;
  /** Reports whether a rotation of the key has begun and its successor was not fetched. */
  isDue(keyId: string): Promise<boolean>;
}
