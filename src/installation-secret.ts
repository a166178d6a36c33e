// Whether a secret is the one that a database was set up with: under another one every key is refused, and nothing says why.
import { createHmac } from "node:crypto";
import type { SigningKey } from "./domain/signing-key.ts";
import { sameSecret } from "./policy/opaque-token.ts";
import { unseal } from "./policy/sealing.ts";
import type { Database } from "./storage/database.ts";
import { SqlInstallation } from "./storage/installation-store.ts";
import { deriveKey } from "./storage/secret-file.ts";
import { SqlSigningKeyStore } from "./storage/signing-key-store.ts";

const name = "secret_check";

/** Writes nothing. True as well for a database that nothing was written to under a secret. */
export async function isSecretOf(db: Database, secret: Uint8Array, nowSeconds: number): Promise<boolean> {
  const known = await new SqlInstallation(db).find(name);
  if (known !== undefined) return sameSecret(known, checkOf(secret));
  // Of a Headrace that kept no check: its signing keys open under its secret alone.
  const sealingKey = deriveKey(secret, "signing-key-seal-v1");
  const opens = ({ id, sealedPrivateJwk }: SigningKey) => {
    try {
      return unseal(sealedPrivateJwk, sealingKey, id) !== "";
    } catch {
      return false;
    }
  };
  const sealed = await new SqlSigningKeyStore(db).listSigningKeys(nowSeconds);
  return sealed.length === 0 || sealed.some(opens);
}

/** From here on no other is taken. False where it is another one than that of the database: of two first starts one decides. */
export async function claimSecret(db: Database, secret: Uint8Array, nowSeconds: number): Promise<boolean> {
  if (!(await isSecretOf(db, secret, nowSeconds))) return false;
  const own = checkOf(secret);
  return sameSecret(await new SqlInstallation(db).ensure(name, own), own);
}

/** Tells nobody the secret: 256 bits cannot be guessed. */
function checkOf(secret: Uint8Array): string {
  return createHmac("sha256", deriveKey(secret, "secret-check-v1")).update("headrace").digest("base64url");
}
