// The key under which the content of stored responses is sealed: made once for an installation, itself sealed under the secret.
import { hkdfSync, randomBytes } from "node:crypto";
import { StartError } from "../../base/errors.ts";
import type { Keys } from "../../domain/key-ring.ts";
import type { ContentKeyStore, SealFor } from "../../domain/seal.ts";
import { seal, unseal } from "./sealing.ts";

const keyBytes = 32;
/** What the key itself is sealed for. */
const keyContext = "content_key";

/**
 * Makes the key where there is none yet; of several first starts at once all get the same. `sealingKey`: 32 bytes, of the
 * secret in use and of those that are accepted. Throws a StartError where the key opens under none of them.
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

/** The key of pseudonyms, which are the same over all replicas, and after the secret was replaced. Throws likewise. */
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
    // Told below: neither case says more than that it is not the key that was made here.
  }
  throw new StartError(
    "The key of stored responses opens under no secret that HEADRACE_SECRET, or the file `secret`, has. Name the one that was in use before as well, after the one in use. If it is lost, `headrace secret forget-old --force` gives up the responses that are stored.",
  );
}
