// The key under which stored responses are sealed: created once for an installation, and itself sealed under the
// secret.
import { hkdfSync, randomBytes } from "node:crypto";
import { StartError } from "../../base/errors.ts";
import type { Keys } from "../../domain/key-ring.ts";
import type { ContentKeyStore, SealFor } from "../../domain/seal.ts";
import { seal, unseal } from "./sealing.ts";

const keyBytes = 32;
/** Context under which the content key itself is sealed. */
const keyContext = "content_key";

/**
 * Opens the key, or creates it if there is none; processes that start at the same time get the same key. `sealingKey`
 * has keys of 32 bytes: that of the current secret and those of accepted older ones. Throws a StartError if none of
 * them opens the key.
 */
export async function openContentKey(store: ContentKeyStore, sealingKey: Keys): Promise<SealFor> {
  const key = await foundKey(store, sealingKey);
  return (purpose) => ({
    seal: (text) => seal(text, key, purpose),
    open(sealedText) {
      try {
        return unseal(sealedText, key, purpose);
      } catch {
        return undefined;
      }
    },
  });
}

/**
 * Opens the key of pseudonyms, which stay equal across replicas and after the secret was replaced. Throws a StartError
 * if no secret opens the key.
 */
export async function openPseudonymKey(store: ContentKeyStore, sealingKey: Keys): Promise<Uint8Array> {
  return new Uint8Array(hkdfSync("sha256", await foundKey(store, sealingKey), "", "pseudonyms-v1", keyBytes));
}

async function foundKey(store: ContentKeyStore, sealingKey: Keys): Promise<Uint8Array> {
  return opened((await store.find()) ?? (await store.add(newKey(sealingKey))), sealingKey);
}

function newKey(sealingKey: Keys): string {
  return seal(randomBytes(keyBytes).toString("base64url"), sealingKey, keyContext);
}

function opened(sealed: string, sealingKey: Keys): Uint8Array {
  try {
    const key = Buffer.from(unseal(sealed, sealingKey, keyContext), "base64url");
    if (key.length === keyBytes) return key;
  } catch {
    // A failed decryption is reported below, like a key of the wrong length.
  }
  throw new StartError(
    "The key of stored responses opens under no secret that HEADRACE_SECRET, or the file `secret`, has. Name the one that was in use before as well, after the one in use. If it is lost, `headrace secret forget-old --force` gives up the responses that are stored.",
  );
}
