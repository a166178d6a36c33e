// The keys that sign access tokens.
import type { AuditEvent } from "../audit.ts";

export interface SigningKey {
  /** The key id, sent as `kid` in the JWS header. */
  id: string;
  /** The public JWK, as published. */
  publicJwk: Readonly<Record<string, unknown>>;
  /** Private JWK, sealed under a key derived from the installation's secret. */
  sealedPrivateJwk: string;
  /**
   * Times in Unix seconds. The key is published from `createdAt` on, signs from `activeAt` on, and is no longer
   * published from `retiresAt` on.
   */
  createdAt: number;
  activeAt: number;
  /** Null while this is the newest key. */
  retiresAt: number | null;
}

export interface SigningKeyStore {
  /** Lists keys that have not retired at this time, oldest first. */
  listSigningKeys(nowSeconds: number): Promise<SigningKey[]>;
  /**
   * Adds the key and sets when its predecessor retires, in one transaction with the events. Returns false if another
   * process has added a key meanwhile.
   */
  addSigningKey(
    key: SigningKey,
    predecessor: { id: string; retiresAt: number } | undefined,
    events: readonly AuditEvent[],
  ): Promise<boolean>;
  /**
   * Adds the key and retires all others that are valid at `at`, in one transaction with the event. All processes then
   * reload the keys. Returns the ids of the retired keys.
   */
  replaceSigningKeys(
    key: SigningKey,
    at: number,
    event: (ended: readonly string[]) => readonly AuditEvent[],
  ): Promise<string[]>;
  /** Deletes keys that retired before this time. */
  pruneSigningKeys(retiredBefore: number): Promise<void>;
}
