// Where a browser may be sent on to: only a path of this server, so that none of our links can be made to lead
// elsewhere.

/** The dashboard, if nothing else was requested. */
export const home = "/";

const longest = 4_096;
/**
 * Excludes spaces and control characters, some of which browsers drop, the backslash, and everything that a header
 * cannot contain.
 */
const safe = /^[!-[\]-~]+$/;

/** `text` if it is a path of this server, with its query. Undefined for anything else (RFC 9700, 4.11.2). */
export function localPath(text: string | null | undefined): string | undefined {
  if (text === null || text === undefined || text.length > longest) return undefined;
  if (!text.startsWith("/") || text.startsWith("//") || !safe.test(text)) return undefined;
  return text;
}

/** The sign-in page that leads on to `next`, itself a path of this server. */
export function signInPath(next: string): string {
  return `/sign-in?next=${encodeURIComponent(next)}`;
}

/** `next` in the request's query, if it is a path of this server. */
export function nextOf(target: string): string | undefined {
  const query = target.indexOf("?");
  if (query < 0) return undefined;
  return localPath(new URLSearchParams(target.slice(query)).get("next"));
}
