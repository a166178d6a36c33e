// Client ids that are addresses of documents (Client ID Metadata Documents): what may be one, and the id by which it is known here.
import { createHash } from "node:crypto";
import { parseRange } from "../../base/text/ip-range.ts";

const longest = 500;

/**
 * Whether it is one: https, with a path, in the very form that a URL parser gives it, so that it has no other spelling, no dots
 * to resolve, and a foreign host name in its xn-- form. No host by number: people are shown it.
 */
export function isDocumentUrl(clientId: string): boolean {
  if (!clientId.startsWith("https://") || clientId.length > longest || clientId.includes("#")) return false;
  const url = URL.parse(clientId);
  if (url?.href !== clientId || url.username !== "" || url.password !== "") return false;
  return url.pathname !== "/" && parseRange(url.hostname.replace(/^\[|\]$/g, "")) === undefined;
}

/** By which grants, usage and limits know the client of a document; any other client id is one already. */
export function appIdOf(clientId: string): string {
  if (!isDocumentUrl(clientId)) return clientId;
  return `app_${createHash("sha256").update(clientId).digest("base64url")}`;
}
