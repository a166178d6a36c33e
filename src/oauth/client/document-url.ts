// Checks client ids that are URLs of metadata documents (Client ID Metadata Documents), and maps them to our own ids.
import { createHash } from "node:crypto";
import { parseRange } from "../../base/text/ip-range.ts";

const longest = 500;

/**
 * Reports whether a client id is a document's URL: https, with a path, and exactly as a URL parser writes it. So it has
 * one spelling, no dots to resolve, and a foreign host name in its xn-- form. Numeric hosts are refused, because people
 * see the host.
 */
export function isDocumentUrl(clientId: string): boolean {
  if (!clientId.startsWith("https://") || clientId.length > longest || clientId.includes("#")) return false;
  const url = URL.parse(clientId);
  if (url?.href !== clientId || url.username !== "" || url.password !== "") return false;
  return url.pathname !== "/" && parseRange(url.hostname.replace(/^\[|\]$/g, "")) === undefined;
}

/**
 * Returns the app id of a client with a document, which grants, usage and limits contain. Any other client id is
 * returned unchanged.
 */
export function appIdOf(clientId: string): string {
  if (!isDocumentUrl(clientId)) return clientId;
  return `app_${createHash("sha256").update(clientId).digest("base64url")}`;
}
