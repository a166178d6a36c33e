// Checks that a redirect target is a path on this server, so that a link of the gateway cannot lead to another site.

/** The path of the dashboard, the default target. */
export const home = "/";

const longest = 4_096;
/**
 * Matches characters that are safe in a path. Excludes the backslash, spaces, control characters and everything else
 * that a header cannot contain, because browsers drop some of them.
 */
const safe = /^[!-[\]-~]+$/;

/** Returns `text` if it is a path on this server (RFC 9700, 4.11.2), or undefined. */
export function localPath(text: string | null | undefined): string | undefined {
  if (text === null || text === undefined || text.length > longest) return undefined;
  if (!text.startsWith("/") || text.startsWith("//") || !safe.test(text)) return undefined;
  return text;
}

/** Returns the path of the sign-in page, which continues at `next`. `next` must be a path on this server. */
export function signInPath(next: string): string {
  return `/sign-in?next=${encodeURIComponent(next)}`;
}

/** Returns the query parameter `next`, if it is a path on this server. */
export function nextOf(target: string): string | undefined {
  const query = target.indexOf("?");
  if (query < 0) return undefined;
  return localPath(new URLSearchParams(target.slice(query)).get("next"));
}
