// Device authorization (RFC 8628, 3.1): a device without a browser gets one code to poll with, and one for its user to
// type.
import { longLived } from "../base/long-lived.ts";
import type { DeviceCode, OAuthStore } from "../domain/people/oauth.ts";
import { newOpaqueToken, tokenDigest } from "../policy/credentials/opaque-token.ts";
import { defaultResources } from "../policy/credentials/resources.ts";
import type { ClientThrottle } from "./client/client-throttle.ts";
import { OAuthError } from "./oauth-error.ts";
import { namedResources } from "./resources.ts";
import { requestedScopes } from "./scopes.ts";
import type { ClientRequest } from "./token/stage.ts";
import { newUserCode, normalizedUserCode } from "./user-code.ts";

export interface DeviceAuthorizationDeps {
  oauth: Pick<OAuthStore, "insertDeviceCode">;
  clientThrottle: Pick<ClientThrottle, "requireDevice">;
  issuer(): string;
}

/** The device authorization response (RFC 8628, 3.2). */
export interface DeviceAuthorization {
  device_code: string;
  user_code: string;
  verification_uri: string;
  verification_uri_complete: string;
  /** The lifetime in seconds. */
  expires_in: number;
  interval: number;
}

const lifeSeconds = longLived.deviceCode.maxMs / 1_000;
const intervalSeconds = 5;
/**
 * Maximum tries to find an unused code. A collision happens once in billions, so several in a row are an internal
 * error.
 */
const attempts = 4;

/**
 * Issues codes. Throws `unauthorized_client`, `invalid_scope`, `invalid_target`, and a GatewayError
 * `rate_limit_exceeded`.
 */
export async function authorizeDevice(
  { client, parameters, resources: named, origin }: ClientRequest,
  { oauth, clientThrottle, issuer }: DeviceAuthorizationDeps,
): Promise<DeviceAuthorization> {
  // Unverified clients are refused: without a redirect URI, a person who is talked into typing a code cannot find out
  // which app asks.
  if (client.unverified) {
    throw new OAuthError("unauthorized_client", "Devices need an app that an account here has registered.");
  }
  const scopes = requestedScopes(parameters.get("scope"), client);
  if ("fault" in scopes) throw new OAuthError("invalid_scope", scopes.fault);
  const resources = namedResources(named, issuer());
  if ("fault" in resources) throw new OAuthError("invalid_target", resources.fault);
  await clientThrottle.requireDevice(client, origin.clientAddress);
  for (let attempt = 0; attempt < attempts; attempt++) {
    const deviceCode = newOpaqueToken("hrd_");
    const userCode = newUserCode();
    const code: DeviceCode = {
      digest: tokenDigest(deviceCode),
      userCode: normalizedUserCode(userCode) ?? "",
      appId: client.id,
      environment: client.environment,
      scopes,
      tools: null,
      quotas: null,
      resources: resources.length > 0 ? resources : defaultResources(scopes),
      createdAt: origin.nowSeconds,
      expiresAt: origin.nowSeconds + lifeSeconds,
      intervalSeconds,
      polledAt: null,
      state: "pending",
      personId: null,
      accountId: null,
      membershipId: null,
      grantId: null,
    };
    if (!(await oauth.insertDeviceCode(code))) continue;
    const page = `${issuer()}/device`;
    return {
      device_code: deviceCode,
      user_code: userCode,
      verification_uri: page,
      verification_uri_complete: `${page}?user_code=${userCode}`,
      expires_in: lifeSeconds,
      interval: intervalSeconds,
    };
  }
  throw new Error("Every new user code was taken.");
}
