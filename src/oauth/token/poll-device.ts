// Finds the device code that a request presents, and counts that it was asked for (RFC 8628, 3.4).
import type { DeviceCode } from "../../domain/people/oauth.ts";
import { tokenDigest } from "../../policy/credentials/opaque-token.ts";
import { invalidGrant } from "../oauth-error.ts";
import { type ClientRequest, required, type TokenDeps } from "./stage.ts";

export interface PolledDevice {
  code: DeviceCode;
  tooEarly: boolean;
}

export async function pollDevice(request: ClientRequest, { oauth }: TokenDeps): Promise<PolledDevice> {
  const digest = tokenDigest(required(request, "device_code"));
  const polled = await oauth.pollDeviceCode(digest, request.origin.nowSeconds);
  if (polled) return polled;
  throw invalidGrant("device_code_unknown");
}
