// Seals what clients keep for us between two requests, such as the thoughts of a model, under the installation's secret.

import type { Keys } from "../domain/key-ring.ts";
import type { Seal } from "../domain/seal.ts";
import { seal, unseal } from "../policy/credentials/sealing.ts";

/** What one account got sealed opens for that account alone. */
export function replySeals(keys: Keys): (accountId: string) => Seal {
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
    };
  };
}
