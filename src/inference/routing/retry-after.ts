// Reads when a model server may be asked again.

interface Fields {
  get(name: string): string | null;
}

/** Maximum seconds: SDKs wait no longer, and OpenAI's ignores more than a minute. */
const maxSeconds = 60;
const defaultSeconds = 5;

/**
 * Returns whole seconds from 1 to 60: from `retry-after-ms`, as OpenAI and Azure send it, or from `Retry-After` (RFC
 * 9110, 10.2.3), in seconds or as a date by the server's clock. Returns 5 if neither is useful.
 */
export function retryAfterOf(headers: Fields): number {
  const said = [inMs(headers), inSeconds(headers), untilDate(headers)].find((seconds) => seconds > 0);
  return said === undefined ? defaultSeconds : Math.min(Math.ceil(said), maxSeconds);
}

function inMs(headers: Fields): number {
  return numberOf(headers.get("retry-after-ms")) / 1000;
}

function inSeconds(headers: Fields): number {
  return numberOf(headers.get("retry-after"));
}

function untilDate(headers: Fields): number {
  return (Date.parse(headers.get("retry-after") ?? "") - Date.parse(headers.get("date") ?? "")) / 1000;
}

/** Returns NaN for a text that is no number. */
function numberOf(text: string | null): number {
  return /^\d+(?:\.\d+)?$/.test(text ?? "") ? Number(text) : Number.NaN;
}
