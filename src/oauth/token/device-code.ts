// The grant type of a device code (RFC 8628, 3.4 and 3.5): its checks in order, and its result.
import type { DeviceCode } from "../../domain/people/oauth.ts";
import { tokenDigest } from "../../policy/credentials/opaque-token.ts";
import { invalidGrant, OAuthError } from "../oauth-error.ts";
import { created } from "./grant-events.ts";
import { newGrant } from "./issue.ts";
import { type ClientRequest, type GrantType, required, type TokenAnswer, type TokenDeps } from "./stage.ts";

export const deviceCode: GrantType<PolledDevice> = {
  find: pollDevice,
  stages: [deviceIsOfClient, deviceIsFresh, deviceWasApproved, redeemDevice],
};

interface PolledDevice {
  code: DeviceCode;
  tooEarly: boolean;
}

/** Finds the device code that a request presents, and counts the poll (RFC 8628, 3.4). */
async function pollDevice(request: ClientRequest, { oauth }: TokenDeps): Promise<PolledDevice> {
  const digest = tokenDigest(required(request, "device_code"));
  const polled = await oauth.pollDeviceCode(digest, request.origin.nowSeconds);
  if (polled) return polled;
  throw invalidGrant("device_code_unknown");
}

/** A device code works only for the client that it was issued to (RFC 8628, 3.4). */
function deviceIsOfClient({ code }: PolledDevice, { client }: ClientRequest): undefined {
  if (code.appId !== client.id) throw invalidGrant("device_code_of_other_client");
}

/** Refuses a device code after its lifetime, decided or not (RFC 8628, 3.5). */
function deviceIsFresh({ code }: PolledDevice, { origin }: ClientRequest): undefined {
  if (origin.nowSeconds < code.expiresAt) return;
  throw new OAuthError("expired_token", "The device code has expired: begin again with a new one.");
}

/** Refuses until a person has decided; a device that polls too often must slow down (RFC 8628, 3.5). */
function deviceWasApproved({ code, tooEarly }: PolledDevice): undefined {
  switch (code.state) {
    case "approved":
      return;
    case "denied":
      throw new OAuthError("access_denied", "The request was denied.");
    case "redeemed":
      throw invalidGrant("device_code_used");
    case "pending":
      if (!tooEarly) throw new OAuthError("authorization_pending", "Nobody has decided yet; ask again.");
      throw new OAuthError("slow_down", `Ask at most once in ${code.intervalSeconds} s.`);
  }
}

/** Redeems the approved device code and issues its tokens in one step. */
async function redeemDevice({ code }: PolledDevice, request: ClientRequest, deps: TokenDeps): Promise<TokenAnswer> {
  const { personId, accountId, membershipId } = code;
  if (personId === null || accountId === null || membershipId === null) throw invalidGrant("device_code_undecided");
  const { answer, ...issued } = await newGrant({ ...code, personId, accountId, membershipId }, request, deps);
  const event = created(request, issued.grant, "device_code");
  if (await deps.oauth.redeemDeviceCode(code.digest, issued, event)) return answer;
  throw invalidGrant("device_code_used");
}
