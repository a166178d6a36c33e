// Seals the answer to a refresh request, which may have to be repeated. Only the same request with the same token opens
// it.
import { createHmac } from "node:crypto";
import { type KeyRing, mapKeys } from "../../domain/key-ring.ts";
import { seal, unseal } from "../../policy/credentials/sealing.ts";
import type { ClientRequest, TokenAnswer, TokenDeps } from "./stage.ts";

type Keys = Pick<TokenDeps, "sealingKey">;

/**
 * Seals an answer. `token` is the refresh token of the request, without which even the server cannot open the result.
 */
export function sealAnswer(answer: TokenAnswer, token: string, request: ClientRequest, keys: Keys): string {
  return seal(JSON.stringify(answer), keyOf(token, keys), contextOf(request));
}

/** Opens an answer; undefined if it answered another request. */
export function openAnswer(sealed: string, token: string, request: ClientRequest, keys: Keys): TokenAnswer | undefined {
  try {
    return JSON.parse(unseal(sealed, keyOf(token, keys), contextOf(request))) as TokenAnswer;
  } catch {
    return undefined;
  }
}

function keyOf(token: string, { sealingKey }: Keys): KeyRing {
  return mapKeys(sealingKey, (key) => createHmac("sha256", key).update(token).digest());
}

/** Returns the parts of a request that must be equal for its answer to be repeated. */
function contextOf({ client, parameters, resources }: ClientRequest): string {
  return JSON.stringify(["refresh-answer", client.id, parameters.get("scope") ?? null, ...resources]);
}
