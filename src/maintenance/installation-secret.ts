// Checks whether a secret is the one that a database was set up with. With another secret, every key would be refused.
import { createHmac } from "node:crypto";
import type { KeyRing } from "../domain/key-ring.ts";
import { sameSecret } from "../policy/credentials/opaque-token.ts";
import { unseal } from "../policy/credentials/sealing.ts";
import { deriveKey } from "../storage/files/secret-file.ts";
import type { Database } from "../storage/sql/database.ts";
import { type SecretState, SqlSecretStore, secretIdOf } from "../storage/tables/secret-store.ts";
import { SqlSigningKeyStore } from "../storage/tables/signing-key-store.ts";

/**
 * Returns which of the secrets the database uses; undefined if none. For a new database, returns the first. Writes
 * nothing.
 */
export async function secretInUse(db: Database, secrets: KeyRing, nowSeconds: number): Promise<Uint8Array | undefined> {
  return inUse(db, await new SqlSecretStore(db).state(), secrets, nowSeconds);
}

/**
 * Makes the first secret the one in use; the others stay accepted. Returns false if the database uses none of them. If
 * two processes do this at once, only one succeeds.
 */
export async function claimSecret(db: Database, secrets: KeyRing, nowSeconds: number): Promise<boolean> {
  const store = new SqlSecretStore(db);
  const state = await store.state();
  const found = await inUse(db, state, secrets, nowSeconds);
  if (!found) return false;
  const own = checkOf(secrets[0]);
  if (state.check === own && state.first !== undefined) return true;
  return await store.claim({ own, accepted: secrets.map(checkOf), before: checkOf(found), nowSeconds });
}

/** Returns a digest that identifies the secret and does not reveal it. */
export function checkOf(secret: Uint8Array): string {
  return createHmac("sha256", deriveKey(secret, "secret-check-v1")).update("headrace").digest("base64url");
}

/** Returns the id of a secret, by which database rows refer to it. */
export function idOfSecret(secret: Uint8Array): string {
  return secretIdOf(checkOf(secret));
}

async function inUse(
  db: Database,
  { check }: SecretState,
  secrets: KeyRing,
  nowSeconds: number,
): Promise<Uint8Array | undefined> {
  if (check !== undefined) return secrets.find((secret) => sameSecret(check, checkOf(secret)));
  // A database from a version without this check: try which secret opens its signing keys.
  const sealed = await new SqlSigningKeyStore(db).listSigningKeys(nowSeconds);
  if (sealed.length === 0) return secrets[0];
  return secrets.find((secret) => {
    const sealingKey = deriveKey(secret, "signing-key-seal-v1");
    return sealed.some(({ id, sealedPrivateJwk }) => {
      try {
        return unseal(sealedPrivateJwk, sealingKey, id) !== "";
      } catch {
        return false;
      }
    });
  });
}
