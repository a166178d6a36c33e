// The addresses of an app, checked beyond their shape: where people may be sent back to, and its home page.
import { invalidRequest } from "../../base/errors.ts";

/** What RFC 3986 lets stand in an address; browsers would quietly change or drop anything else. */
const uriCharacters = /^(?:[A-Za-z0-9\-._~:/?@!$&'(),;=+[\]]|%[0-9A-Fa-f]{2})+$/;
/** Scheme and, where there is one, authority. */
const uriParts = /^([A-Za-z][A-Za-z0-9+.-]*):(?:\/\/([^/?]*))?(.*)$/;
/** The parameters of the answer itself (RFC 6749, 4.1.2; RFC 9207, 2), which has each once. */
const ofAnswers = ["code", "state", "iss", "error", "error_description", "error_uri"];
/** Loopback hosts in the form that a client writes, and not every form that a URL parser takes for one. */
const loopbackHost = /^(?:127\.0\.0\.1|\[::1\]|localhost)(?::\d{1,5})?$/;

/** Kept byte for byte, as they are compared. Throws `invalid_request` that names the place and what to write instead. */
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
 * An app's own scheme is a domain name backwards (RFC 8252, 7.1), whose owner can be known. Words without a dot, and names
 * that begin otherwise, belong to systems and browsers: `ms-msdt:`, `x-apple.systempreferences:`.
 */
const ownScheme = /^[a-z]{2,}(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+$/;
/**
 * Redirect addresses of well-known MCP clients whose scheme has no dot: Cursor, Warp, and Cline in each editor that runs it.
 * Other addresses of the same programs open files or install MCP servers.
 */
const knownAddresses = [
  /^cursor:\/\/anysphere\.cursor-(?:mcp|retrieval)\/oauth\/(?:[\w-]+\/)*callback$/,
  /^warp:\/\/mcp\/oauth2callback$/,
  /^(?:vscode|vscode-insiders|vscodium|cursor|windsurf):\/\/saoudrizwan\.claude-dev\/mcp-auth\/callback\/[\w-]+$/,
];

/** Returns what is wrong with the address; undefined: nothing. */
export function redirectFault(uri: string): string | undefined {
  if (uri.includes("*")) return "must have no wildcard; list each address of its own.";
  // RFC 6749, 3.1.2. An empty one, too.
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

/** What holds for each kind of address. */
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
