// Reads from a response after how many seconds the model server may be asked again.

interface Fields {
  get(name: string): string | null;
}

/** Maximum seconds. SDKs do not wait longer, and OpenAI's SDK ignores values above a minute. */
const maxSeconds = 60;
const defaultSeconds = 5;

/**
 * Returns a whole number of seconds from 1 to 60. Reads `retry-after-ms` (OpenAI, Azure). If it is not a positive
 * number, reads `Retry-After` (RFC 9110, 10.2.3), in seconds or as a date by the server's clock. Default: 5.
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

/** Returns NaN if the text is no number. */
function numberOf(text: string | null): number {
  return /^\d+(?:\.\d+)?$/.test(text ?? "") ? Number(text) : Number.NaN;
}
