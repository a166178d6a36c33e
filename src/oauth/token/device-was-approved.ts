// Until a person has decided, the device waits, and asks more rarely when it asked too often (RFC 8628, 3.5).
import { invalidGrant, OAuthError } from "../oauth-error.ts";
import type { PolledDevice } from "./poll-device.ts";

export function deviceWasApproved({ code, tooEarly }: PolledDevice): undefined {
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
