// The token endpoint (RFC 6749, 3.2): for each grant type its stages, in the order in which a request passes them.
import { OAuthError } from "../oauth-error.ts";
import { codeIsFresh } from "./code-is-fresh.ts";
import { codeIsOfClient } from "./code-is-of-client.ts";
import { codeIsUnused } from "./code-is-unused.ts";
import { deviceIsFresh } from "./device-is-fresh.ts";
import { deviceIsOfClient } from "./device-is-of-client.ts";
import { deviceWasApproved } from "./device-was-approved.ts";
import { findCode } from "./find-code.ts";
import { findRefreshToken } from "./find-refresh-token.ts";
import { grantStands } from "./grant-stands.ts";
import { pollDevice } from "./poll-device.ts";
import { redeemCode } from "./redeem-code.ts";
import { redeemDevice } from "./redeem-device.ts";
import { redirectUriIsRepeated } from "./redirect-uri-is-repeated.ts";
import { refreshTokenIsFresh } from "./refresh-token-is-fresh.ts";
import { refreshTokenIsOfClient } from "./refresh-token-is-of-client.ts";
import { refreshTokenIsUnused } from "./refresh-token-is-unused.ts";
import { rotateRefreshToken } from "./rotate-refresh-token.ts";
import { type ClientRequest, required, type Stage, type TokenAnswer, type TokenDeps } from "./stage.ts";
import { verifierMatches } from "./verifier-matches.ts";

type Flow = (request: ClientRequest, deps: TokenDeps) => Promise<TokenAnswer>;

/** Before these, the client was authenticated. Only the last stage of each takes what was presented. */
const flows: Readonly<Record<string, Flow>> = {
  authorization_code: flow(findCode, [
    codeIsOfClient,
    codeIsUnused,
    codeIsFresh,
    redirectUriIsRepeated,
    verifierMatches,
    redeemCode,
  ]),
  refresh_token: flow(findRefreshToken, [
    refreshTokenIsOfClient,
    grantStands,
    refreshTokenIsUnused,
    refreshTokenIsFresh,
    rotateRefreshToken,
  ]),
  "urn:ietf:params:oauth:grant-type:device_code": flow(pollDevice, [
    deviceIsOfClient,
    deviceIsFresh,
    deviceWasApproved,
    redeemDevice,
  ]),
};

export const grantTypes: readonly string[] = Object.keys(flows);

/** Throws OAuthError, and GatewayError where a store is away. */
export function answerTokenRequest(request: ClientRequest, deps: TokenDeps): Promise<TokenAnswer> {
  const wanted = required(request, "grant_type");
  const answer = Object.hasOwn(flows, wanted) ? flows[wanted] : undefined;
  if (answer) return answer(request, deps);
  throw new OAuthError("unsupported_grant_type", `grant_type: must be one of ${grantTypes.join(", ")}.`);
}

function flow<Found>(
  find: (request: ClientRequest, deps: TokenDeps) => Promise<Found>,
  stages: readonly Stage<Found>[],
): Flow {
  return async (request, deps) => {
    const found = await find(request, deps);
    for (const stage of stages) {
      const answer = await stage(found, request, deps);
      if (answer) return answer;
    }
    throw new Error("The last stage of a grant type gives an answer.");
  };
}
