// Base URLs of servers that an operator gives in the configuration file or over the API.

/**
 * Returns an http or https URL, or undefined for anything else and for a URL with credentials, a query, a fragment or a
 * backslash.
 */
export function parseHttpUrl(text: string): URL | undefined {
  if (!/^https?:\/\//i.test(text) || /[\s?#\\]/.test(text) || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  return url.username === "" && url.password === "" ? url : undefined;
}

/** Returns the base URL without a slash at its end, so that paths can be appended. */
export function trimSlashes(url: string): string {
  return url.replace(/(?<!\/)\/+$/, "");
}
