// Base URLs of servers that an operator names, in the configuration file or over the API.

/** An http or https URL; undefined for anything else, or where it has credentials, a query, a fragment or a backslash. */
export function parseHttpUrl(text: string): URL | undefined {
  if (!/^https?:\/\//i.test(text) || /[\s?#\\]/.test(text) || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  return url.username === "" && url.password === "" ? url : undefined;
}

/** The base URL without a slash at its end, so that paths can be appended. */
export function trimSlashes(url: string): string {
  return url.replace(/(?<!\/)\/+$/, "");
}
