// Reads which client a request claims to come from, and the client's proof (RFC 6749, 2.3.1).
import { OAuthError } from "../oauth-error.ts";

export interface PresentedClient {
  id: string;
  /** Undefined if no secret was sent, or an empty one. */
  secret: string | undefined;
}

const base64 = /^[A-Za-z0-9+/]+={0,2}$/;
const maxHeaderLength = 2_048;

/** Reads the client; `parameters` must not contain empty values. Throws `invalid_client` or `invalid_request`. */
export function presentedClient(
  authorization: string | null,
  parameters: ReadonlyMap<string, string>,
): PresentedClient {
  const id = parameters.get("client_id");
  const secret = parameters.get("client_secret");
  if (authorization !== null) return fromHeader(authorization, id, secret);
  if (id !== undefined) return { id, secret };
  throw new OAuthError(
    "invalid_client",
    "Authenticate the app: HTTP Basic with its client_id and secret, or client_id and client_secret in the body; a public app sends its client_id alone.",
    "client_missing",
  );
}

function fromHeader(authorization: string, id: string | undefined, secret: string | undefined): PresentedClient {
  const basic = readBasic(authorization);
  if (!basic) {
    throw new OAuthError(
      "invalid_client",
      "Authorization: must be HTTP Basic, with client_id and secret.",
      "not_basic",
    );
  }
  // RFC 6749, 2.3: a request may use only one method of authentication.
  if (secret !== undefined) {
    throw new OAuthError(
      "invalid_request",
      "Send the secret once: in the Authorization header or as client_secret, not both.",
      "two_methods",
    );
  }
  if (id !== undefined && id !== basic.id) {
    throw new OAuthError("invalid_request", "client_id: is not the one in the Authorization header.", "two_clients");
  }
  return basic;
}

/** Parses Basic authorization, whose name and password are form-encoded first. */
function readBasic(authorization: string): PresentedClient | undefined {
  const encoded = /^Basic +(\S+) *$/i.exec(authorization)?.[1];
  if (encoded === undefined || encoded.length > maxHeaderLength || !base64.test(encoded)) return undefined;
  const text = Buffer.from(encoded, "base64").toString("utf8");
  const colon = text.indexOf(":");
  const id = formDecoded(text.slice(0, Math.max(colon, 0)));
  const secret = formDecoded(text.slice(colon + 1));
  if (colon < 0 || id === undefined || id === "" || secret === undefined) return undefined;
  return { id, secret: secret === "" ? undefined : secret };
}

function formDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}
