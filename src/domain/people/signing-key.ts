// The keys that sign access tokens.
import type { AuditEvent } from "../audit.ts";

export interface SigningKey {
  /** `kid` of the JWS header. */
  id: string;
  /** The public JWK, as published. */
  publicJwk: Readonly<Record<string, unknown>>;
  /** Private JWK, sealed under a key derived from the installation's secret. */
  sealedPrivateJwk: string;
  /** Unix seconds. Published from `createdAt`, signs from `activeAt`, no longer published from `retiresAt`. */
  createdAt: number;
  activeAt: number;
  /** null for the newest key. */
  retiresAt: number | null;
}

export interface SigningKeyStore {
  /** Lists keys that are not retired at that time, oldest first. */
  listSigningKeys(nowSeconds: number): Promise<SigningKey[]>;
  /** Adds the key and retires its predecessor, in one transaction. Returns false if another process was faster. */
  addSigningKey(key: SigningKey, predecessor: { id: string; retiresAt: number } | undefined): Promise<boolean>;
  /**
   * Adds the key and ends all others at `at`, in one transaction with the event, after which every process reloads the
   * keys. Returns the ids of the ended keys.
   */
  replaceSigningKeys(
    key: SigningKey,
    at: number,
    event: (ended: readonly string[]) => readonly AuditEvent[],
  ): Promise<string[]>;
  /** Deletes keys that retired before `retiredBefore`. */
  pruneSigningKeys(retiredBefore: number): Promise<void>;
}
