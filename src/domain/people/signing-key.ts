// The keys that sign access tokens.
import type { AuditEvent } from "../audit.ts";

export interface SigningKey {
  /** `kid` of the JWS header. */
  id: string;
  /** JWK without its private part, as published. */
  publicJwk: Readonly<Record<string, unknown>>;
  /** Private JWK, sealed under a key derived from the installation's secret. */
  sealedPrivateJwk: string;
  /** Unix seconds. Published from `createdAt`, signs from `activeAt`, no longer published from `retiresAt`. */
  createdAt: number;
  activeAt: number;
  /** null while it is the newest. */
  retiresAt: number | null;
}

export interface SigningKeyStore {
  /** Those not retired at that time, oldest first. */
  listSigningKeys(nowSeconds: number): Promise<SigningKey[]>;
  /** Adds it and lets the one before it retire, in one transaction; false where another process was faster. */
  addSigningKey(key: SigningKey, predecessor: { id: string; retiresAt: number } | undefined): Promise<boolean>;
  /**
   * Adds it and ends all others at `at`, in one transaction with the event, after which every process looks again. Gives the
   * ids of those that it ended.
   */
  replaceSigningKeys(
    key: SigningKey,
    at: number,
    event: (ended: readonly string[]) => readonly AuditEvent[],
  ): Promise<string[]>;
  /** Forgets those that retired before. */
  pruneSigningKeys(retiredBefore: number): Promise<void>;
}
