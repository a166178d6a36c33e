// A code that comes a second time was seen by somebody else: what it gave ends (RFC 6749, 4.1.2), also when the code has expired.
import type { AuthorizationCode } from "../../domain/people/oauth.ts";
import { invalidGrant } from "../oauth-error.ts";
import { replayed } from "./grant-events.ts";
import type { ClientRequest, TokenDeps } from "./stage.ts";

export async function codeIsUnused(
  code: AuthorizationCode,
  request: ClientRequest,
  { oauth, changed }: TokenDeps,
): Promise<undefined> {
  if (code.grantId === null) return;
  const event = replayed(request, { accountId: code.accountId, grantId: code.grantId }, "code_used_again");
  if (await oauth.revokeGrant(code.grantId, event)) changed([code.grantId]);
  throw invalidGrant("code_used_again");
}
