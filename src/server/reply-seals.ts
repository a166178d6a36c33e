// Seals values that clients keep between two requests, such as reasoning, and makes pseudonyms for identifiers that
// clients send, such as user ids.
import { createHmac } from "node:crypto";
import type { Keys } from "../domain/key-ring.ts";
import type { AccountSeal } from "../domain/seal.ts";
import { seal, unseal } from "../policy/credentials/sealing.ts";

/** Returns the seals of an account: a value sealed for one account opens only for that account. */
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
