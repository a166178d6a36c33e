// An answer that may have to be repeated, sealed so that only the same request with the same token opens it.
import { createHmac } from "node:crypto";
import { type KeyRing, mapKeys } from "../../domain/key-ring.ts";
import { seal, unseal } from "../../policy/credentials/sealing.ts";
import type { ClientRequest, TokenAnswer, TokenDeps } from "./stage.ts";

type Keys = Pick<TokenDeps, "sealingKey">;

/** `token` is the refresh token of the request. Without it nobody, not even the server, can open the result. */
export function sealAnswer(answer: TokenAnswer, token: string, request: ClientRequest, keys: Keys): string {
  return seal(JSON.stringify(answer), keyOf(token, keys), contextOf(request));
}

/** Undefined if it answered another request. */
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

/** The parts by which two requests with the same token count as the same. */
function contextOf({ client, parameters, resources }: ClientRequest): string {
  return JSON.stringify(["refresh-answer", client.id, parameters.get("scope") ?? null, ...resources]);
}
