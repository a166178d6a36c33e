// A code works only for the client that it was issued to (RFC 6749, 4.1.3).
import type { AuthorizationCode } from "../../domain/people/oauth.ts";
import { invalidGrant } from "../oauth-error.ts";
import type { ClientRequest } from "./stage.ts";

export function codeIsOfClient(code: AuthorizationCode, { client }: ClientRequest): undefined {
  if (code.appId !== client.id) throw invalidGrant("code_of_other_client");
}
