// A device code, decided or not, is over after its time (RFC 8628, 3.5).
import { OAuthError } from "../oauth-error.ts";
import type { PolledDevice } from "./poll-device.ts";
import type { ClientRequest } from "./stage.ts";

export function deviceIsFresh({ code }: PolledDevice, { origin }: ClientRequest): undefined {
  if (origin.nowSeconds < code.expiresAt) return;
  throw new OAuthError("expired_token", "The device code has expired: begin again with a new one.");
}
