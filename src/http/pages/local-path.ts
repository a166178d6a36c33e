// Checks where a browser may be sent on to: only to a path of this server, so that none of our links can lead
// elsewhere.

/** The path of the dashboard, the default target. */
export const home = "/";

const longest = 4_096;
/**
 * Excludes spaces and control characters, some of which browsers drop, the backslash, and characters that a header
 * cannot contain.
 */
const safe = /^[!-[\]-~]+$/;

/** Returns `text` if it is a path of this server, with its query; else undefined (RFC 9700, 4.11.2). */
export function localPath(text: string | null | undefined): string | undefined {
  if (text === null || text === undefined || text.length > longest) return undefined;
  if (!text.startsWith("/") || text.startsWith("//") || !safe.test(text)) return undefined;
  return text;
}

/** Returns the sign-in page's path that leads on to `next`, itself a path of this server. */
export function signInPath(next: string): string {
  return `/sign-in?next=${encodeURIComponent(next)}`;
}

/** Returns `next` from the request's query, if it is a path of this server. */
export function nextOf(target: string): string | undefined {
  const query = target.indexOf("?");
  if (query < 0) return undefined;
  return localPath(new URLSearchParams(target.slice(query)).get("next"));
}
