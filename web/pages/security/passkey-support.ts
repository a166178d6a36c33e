// Detects whether this browser supports passkeys at this address, and explains why adding a passkey failed.
import { ApiFailure } from "../../api/client.ts";

export const passkeysPath = "/v1/passkeys";
export const maxPasskeyNameLength = 60;

/** WebAuthn accepts no IP address as a relying party id. */
const ipAddress = /^(?:[\d.]+|\[.*\])$/;

/** The answer to whether passkeys work at this address. `elsewhere` is another address of this page where they work. */
type PasskeySupport = { kind: "here" } | { kind: "none"; why: string; elsewhere?: string };

export function passkeySupport(): PasskeySupport {
  const { hostname, protocol, port, pathname } = window.location;
  const isAddress = ipAddress.test(hostname);
  if (isAddress && protocol === "http:" && window.isSecureContext) {
    return {
      kind: "none",
      why: "Browsers support passkeys only if the address of the server has a name, not an IP address.",
      elsewhere: `http://localhost:${port}${pathname}`,
    };
  }
  if (isAddress || !window.isSecureContext) {
    const why = isAddress ? "by an IP address" : "over plain http";
    return {
      kind: "none",
      why: `Browsers support passkeys only at a host name with https. This page was opened ${why}. Ask an operator of the server for its https address.`,
    };
  }
  if (typeof PublicKeyCredential === "undefined") {
    return { kind: "none", why: "This browser does not support passkeys. Current versions of all common browsers do." };
  }
  return { kind: "here" };
}

const wordsByName: Readonly<Record<string, string>> = {
  NotAllowedError: "No passkey was chosen, or the time ran out. Try again.",
  AbortError: "Adding the passkey was cancelled. Try again.",
  InvalidStateError: "This device already has a passkey for your account.",
  SecurityError: "Passkeys do not work at this address.",
  NotSupportedError: "This device cannot create the required kind of passkey.",
};

/** Explains the browser's errors; the server's errors explain themselves. */
export function passkeyFailure(error: unknown): unknown {
  if (error instanceof ApiFailure || !(error instanceof Error)) return error;
  const message = wordsByName[error.name] ?? "The browser did not create a passkey. Try again.";
  return new ApiFailure({ status: 400, code: "passkey", message });
}
