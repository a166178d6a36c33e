// Checks the addresses of an app beyond their shape: its redirect addresses and its home page.
import { invalidRequest } from "../../base/errors.ts";

/** Characters that RFC 3986 allows in an address. Browsers would change or drop any other. */
const uriCharacters = /^(?:[A-Za-z0-9\-._~:/?@!$&'(),;=+[\]]|%[0-9A-Fa-f]{2})+$/;
/** Matches the scheme and, if present, the authority. */
const uriParts = /^([A-Za-z][A-Za-z0-9+.-]*):(?:\/\/([^/?]*))?(.*)$/;
/** Parameters of the authorization response (RFC 6749, 4.1.2; RFC 9207, 2), each of which occurs once. */
const ofAnswers = ["code", "state", "iss", "error", "error_description", "error_uri"];
/** Matches loopback hosts as clients write them, and not every form that a URL parser accepts. */
const loopbackHost = /^(?:127\.0\.0\.1|\[::1\]|localhost)(?::\d{1,5})?$/;

/**
 * Checks redirect URIs and returns them unchanged, because they are compared byte for byte. Throws `invalid_request`,
 * naming the place and what to write instead.
 */
export function redirectUris(uris: readonly string[]): string[] {
  for (const [i, uri] of uris.entries()) {
    const fault = uris.indexOf(uri) < i ? "is there twice; leave one out." : redirectFault(uri);
    if (fault !== undefined) throw invalidRequest(`redirect_uris[${i}]: ${fault}`);
  }
  return [...uris];
}

export function homepageUrl(url: string | null): string | null {
  if (url === null) return null;
  const fault = homepageFault(url);
  if (fault === undefined) return url;
  throw invalidRequest(`homepage_url: ${fault}`);
}

export function homepageFault(url: string): string | undefined {
  return commonFault(url) ?? (url.startsWith("https://") ? undefined : "must begin with https://.");
}

/**
 * Matches an app's own scheme: a reversed domain name (RFC 8252, 7.1), whose owner can be known. Systems and browsers
 * use words without a dot and beginnings with a hyphen: `ms-msdt:`, `x-apple.systempreferences:`.
 */
const ownScheme = /^[a-z]{2,}(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+$/;
/**
 * Redirect addresses of well-known MCP clients whose scheme has no dot: Cursor, Warp, and Cline in each editor that
 * runs it. Other addresses of the same programs open files or install MCP servers.
 */
const knownAddresses = [
  /^cursor:\/\/anysphere\.cursor-(?:mcp|retrieval)\/oauth\/(?:[\w-]+\/)*callback$/,
  /^warp:\/\/mcp\/oauth2callback$/,
  /^(?:vscode|vscode-insiders|vscodium|cursor|windsurf):\/\/saoudrizwan\.claude-dev\/mcp-auth\/callback\/[\w-]+$/,
];

/** Returns why the redirect URI is invalid; undefined if it is valid. */
export function redirectFault(uri: string): string | undefined {
  if (uri.includes("*")) return "must have no wildcard; list each address of its own.";
  // An empty fragment is refused as well (RFC 6749, 3.1.2).
  if (uri.includes("#")) return "must have no fragment; leave out the # and what follows it.";
  const fault = commonFault(uri);
  if (fault !== undefined) return fault;
  const taken = ofAnswers.find((name) => new URL(uri).searchParams.has(name));
  if (taken !== undefined) return `must not have ${taken} in its query: the answer has one.`;
  const [, scheme = "", authority, rest = ""] = uriParts.exec(uri) ?? [];
  if (scheme === "https") return undefined;
  if (scheme === "http") {
    if (loopbackHost.test(authority ?? "")) return undefined;
    return "must begin with https://; http is for 127.0.0.1, [::1] and localhost alone.";
  }
  if (!ownScheme.test(scheme) && !knownAddresses.some((known) => known.test(uri))) {
    return "must begin with https://, with http:// on 127.0.0.1, [::1] or localhost, or with an app's own scheme, a domain name backwards such as com.example.app:/callback.";
  }
  if (authority !== undefined || rest.startsWith("/")) return undefined;
  return `must have a slash after the scheme, such as ${scheme}:/callback.`;
}

/** Returns why a redirect URI or home page is invalid, by the rules that both share; undefined if they are met. */
function commonFault(uri: string): string | undefined {
  if (!uriCharacters.test(uri)) {
    return "must be an address in ASCII without blanks; percent-encode what an address cannot have, and write a foreign host name in its xn-- form.";
  }
  const [, scheme, authority] = uriParts.exec(uri) ?? [];
  if (scheme === undefined || !URL.canParse(uri))
    return "must be an absolute address, such as https://app.example/callback.";
  if (scheme !== scheme.toLowerCase()) return `must have its scheme in lower case, ${scheme.toLowerCase()}:.`;
  if (authority?.includes("@")) return "must have no user name or password; leave out what is before the @, and the @.";
  if (/^https?$/.test(scheme) && !authority) return `must have a host, after ${scheme}://.`;
  return undefined;
}
