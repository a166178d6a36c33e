// Finds the authorization code that a request presents.
import type { AuthorizationCode } from "../../domain/people/oauth.ts";
import { tokenDigest } from "../../policy/credentials/opaque-token.ts";
import { invalidGrant } from "../oauth-error.ts";
import { type ClientRequest, required, type TokenDeps } from "./stage.ts";

export async function findCode(request: ClientRequest, { oauth }: TokenDeps): Promise<AuthorizationCode> {
  const code = await oauth.findCode(tokenDigest(required(request, "code")));
  if (code) return code;
  throw invalidGrant("code_unknown");
}
