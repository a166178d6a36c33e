// Whether this browser has passkeys at this address, and what it means where adding one fails.
import { ApiFailure } from "../../api/client.ts";

export const passkeysPath = "/v1/passkeys";
export const longestPasskeyName = 60;

/** No browser takes an IP address for a passkey's home. */
const ipAddress = /^(?:[\d.]+|\[.*\])$/;

/** `elsewhere`: the same page, where this computer has passkeys. */
type PasskeySupport = { kind: "here" } | { kind: "none"; why: string; elsewhere?: string };

export function passkeySupport(): PasskeySupport {
  const { hostname, protocol, port, pathname } = window.location;
  const isAddress = ipAddress.test(hostname);
  if (isAddress && protocol === "http:" && window.isSecureContext) {
    return {
      kind: "none",
      why: "Browsers have passkeys only where a server is called by a name, not by an IP address.",
      elsewhere: `http://localhost:${port}${pathname}`,
    };
  }
  if (isAddress || !window.isSecureContext) {
    const why = isAddress ? "by an IP address" : "over plain http";
    return {
      kind: "none",
      why: `Browsers have passkeys only at a name with https, and this page was opened ${why}. Ask whoever runs the server whether it has such an address.`,
    };
  }
  if (typeof PublicKeyCredential === "undefined") {
    return { kind: "none", why: "This browser has no passkeys. Current versions of all common browsers have them." };
  }
  return { kind: "here" };
}

const wordsByName: Readonly<Record<string, string>> = {
  NotAllowedError: "Nothing was chosen, or it took too long. Try again.",
  AbortError: "It was called off. Try again.",
  InvalidStateError: "This device already has a passkey for you here.",
  SecurityError: "Passkeys do not work at this address.",
  NotSupportedError: "This device cannot make the kind of passkey that is needed here.",
};

/** What the browser's own refusals mean; those of the server say it themselves. */
export function passkeyFailure(error: unknown): unknown {
  if (error instanceof ApiFailure || !(error instanceof Error)) return error;
  const message = wordsByName[error.name] ?? "The browser made no passkey. Try again.";
  return new ApiFailure({ status: 400, code: "passkey", message });
}
