// Seals what clients keep for us between two requests, such as the thoughts of a model, and makes pseudonyms for what they say.
import { createHmac } from "node:crypto";
import type { Keys } from "../domain/key-ring.ts";
import type { AccountSeal } from "../domain/seal.ts";
import { seal, unseal } from "../policy/credentials/sealing.ts";

/** What one account got sealed opens for that account alone. */
export function replySeals(keys: Keys, pseudonymKey: Uint8Array): (accountId: string) => AccountSeal {
  return (accountId) => {
    const context = `reply ${accountId}`;
    return {
      seal: (text) => seal(text, keys, context),
      open(sealed) {
        try {
          return unseal(sealed, keys, context);
        } catch {
          return undefined;
        }
      },
      pseudonym: (use, value) =>
        createHmac("sha256", pseudonymKey)
          .update(JSON.stringify([accountId, use, value]))
          .digest("base64url"),
    };
  };
}
