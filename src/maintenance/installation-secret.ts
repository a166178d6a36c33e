// Tells whether a secret is the one that a database was set up with: under another one every key is refused, and
// nothing says why.
import { createHmac } from "node:crypto";
import type { KeyRing } from "../domain/key-ring.ts";
import { sameSecret } from "../policy/credentials/opaque-token.ts";
import { unseal } from "../policy/credentials/sealing.ts";
import { deriveKey } from "../storage/files/secret-file.ts";
import type { Database } from "../storage/sql/database.ts";
import { type SecretState, SqlSecretStore, secretIdOf } from "../storage/tables/secret-store.ts";
import { SqlSigningKeyStore } from "../storage/tables/signing-key-store.ts";

/**
 * The one of the secrets that is in use in the database; undefined where none of them is. The first of them for a
 * database that nothing was written to under a secret. Writes nothing.
 */
export async function secretInUse(db: Database, secrets: KeyRing, nowSeconds: number): Promise<Uint8Array | undefined> {
  return inUse(db, await new SqlSecretStore(db).state(), secrets, nowSeconds);
}

/**
 * Makes the first of the secrets the one in use, from here on; others are taken only beside it. False where the one in
 * use is none of them: of two first starts one decides.
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

/** Tells nobody the secret: 256 bits cannot be guessed. */
export function checkOf(secret: Uint8Array): string {
  return createHmac("sha256", deriveKey(secret, "secret-check-v1")).update("headrace").digest("base64url");
}

/** The id by which rows say what secret they were made under. */
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
  // A Headrace that kept no check has signing keys that open under its secret alone.
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
