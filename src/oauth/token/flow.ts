// The token endpoint (RFC 6749, 3.2): the stages of each grant type, in order.
import { OAuthError } from "../oauth-error.ts";
import { authorizationCode } from "./authorization-code.ts";
import { deviceCode } from "./device-code.ts";
import { refreshToken } from "./refresh-token.ts";
import { type ClientRequest, type GrantType, required, type TokenAnswer, type TokenDeps } from "./stage.ts";

type Flow = (request: ClientRequest, deps: TokenDeps) => Promise<TokenAnswer>;

const flows: Readonly<Record<string, Flow>> = {
  authorization_code: flow(authorizationCode),
  refresh_token: flow(refreshToken),
  "urn:ietf:params:oauth:grant-type:device_code": flow(deviceCode),
};

export const grantTypes: readonly string[] = Object.keys(flows);

/** Answers a token request. Throws OAuthError, or GatewayError if a store cannot be reached. */
export function answerTokenRequest(request: ClientRequest, deps: TokenDeps): Promise<TokenAnswer> {
  const wanted = required(request, "grant_type");
  const answer = Object.hasOwn(flows, wanted) ? flows[wanted] : undefined;
  if (answer) return answer(request, deps);
  throw new OAuthError("unsupported_grant_type", `grant_type: must be one of ${grantTypes.join(", ")}.`);
}

function flow<Found>({ find, stages }: GrantType<Found>): Flow {
  return async (request, deps) => {
    const found = await find(request, deps);
    for (const stage of stages) {
      const answer = await stage(found, request, deps);
      if (answer) return answer;
    }
    throw new Error("The last stage of a grant type gives an answer.");
  };
}
