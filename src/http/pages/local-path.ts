// Where a browser may be sent on to: a path of this server, so that nobody can make a link of ours lead elsewhere.

/** The dashboard, where nothing else was asked for. */
export const home = "/";

const longest = 4_096;
/** No blanks and control characters, some of which browsers drop, no backslash, and nothing that a header cannot carry. */
const safe = /^[!-[\]-~]+$/;

/** `text` where it is a path of this server, with its query; undefined for anything else (RFC 9700, 4.11.2). */
export function localPath(text: string | null | undefined): string | undefined {
  if (text === null || text === undefined || text.length > longest) return undefined;
  if (!text.startsWith("/") || text.startsWith("//") || !safe.test(text)) return undefined;
  return text;
}

/** The sign-in page that leads on to `next`, itself a path of this server. */
export function signInPath(next: string): string {
  return `/sign-in?next=${encodeURIComponent(next)}`;
}

/** `next` of the request's query, where it is a path of this server. */
export function nextOf(target: string): string | undefined {
  const query = target.indexOf("?");
  if (query < 0) return undefined;
  return localPath(new URLSearchParams(target.slice(query)).get("next"));
}
