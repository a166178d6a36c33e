// Seals text under a key of the installation, so that the database alone does not reveal the text.
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { currentKey, type Keys, keyRing } from "../../domain/key-ring.ts";

const version = "v1";
const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/**
 * Seals with AES-256-GCM under the current 32-byte key and a random nonce, which is safe for far more texts than are
 * ever sealed here. `context` is authenticated but not part of the result, so sealed text opens only in the same
 * context.
 */
export function seal(text: string, keys: Keys, context: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, currentKey(keys), nonce, { authTagLength: tagBytes });
  cipher.setAAD(Buffer.from(context));
  const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
  return `${version}.${sealed.toString("base64url")}`;
}

/**
 * Opens sealed text. Throws if the text was sealed under none of the keys or for another context, or if it was changed.
 */
export function unseal(sealed: string, keys: Keys, context: string): string {
  let failure: unknown;
  for (const key of keyRing(keys)) {
    try {
      return open(sealed, key, context);
    } catch (error) {
      failure ??= error;
    }
  }
  throw failure;
}

function open(sealed: string, key: Uint8Array, context: string): string {
  const [found, body = ""] = sealed.split(".");
  if (found !== version) throw new Error("sealed by another version");
  const bytes = Buffer.from(body, "base64url");
  const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(bytes.subarray(-tagBytes));
  const text = decipher.update(bytes.subarray(nonceBytes, -tagBytes));
  return Buffer.concat([text, decipher.final()]).toString("utf8");
}
