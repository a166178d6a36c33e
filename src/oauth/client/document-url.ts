// Client ids that are addresses of documents (Client ID Metadata Documents): checks them, and maps them to our own ids.
import { createHash } from "node:crypto";
import { parseRange } from "../../base/text/ip-range.ts";

const longest = 500;

/**
 * Reports whether an id is such an address: https, with a path, exactly as a URL parser writes it, so that it has one
 * spelling, no dots to resolve, and a foreign host name in its xn-- form. Numeric hosts are refused, because people see
 * the host.
 */
export function isDocumentUrl(clientId: string): boolean {
  if (!clientId.startsWith("https://") || clientId.length > longest || clientId.includes("#")) return false;
  const url = URL.parse(clientId);
  if (url?.href !== clientId || url.username !== "" || url.password !== "") return false;
  return url.pathname !== "/" && parseRange(url.hostname.replace(/^\[|\]$/g, "")) === undefined;
}

/**
 * Returns the id by which grants, usage and limits know the client of a document. Any other client id stays as it is.
 */
export function appIdOf(clientId: string): string {
  if (!isDocumentUrl(clientId)) return clientId;
  return `app_${createHash("sha256").update(clientId).digest("base64url")}`;
}
