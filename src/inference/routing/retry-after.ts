// When a model server says that it may be asked again.

interface Fields {
  get(name: string): string | null;
}

/** SDKs wait no longer: openai's ignores what is over a minute. */
const maxSeconds = 60;
const defaultSeconds = 5;

/**
 * Whole seconds, 1 to 60: of `retry-after-ms`, as OpenAI and Azure send it, or of `Retry-After` (RFC 9110, 10.2.3), seconds
 * or a date, which counts from the server's own. 5 where it says nothing of use.
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

/** NaN for what is none. */
function numberOf(text: string | null): number {
  return /^\d+(?:\.\d+)?$/.test(text ?? "") ? Number(text) : Number.NaN;
}
