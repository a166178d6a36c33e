// The API key among the headers of a request: X-API-Key, or api-key, as clients made for Azure send it.
import type { IncomingRequest } from "../../http1/message.ts";

type Headers = IncomingRequest["headers"];

/** The key, or null where neither has one. Two that differ are told as one field that comes twice (RFC 9110, 5.3), which is no key. */
export function apiKeyOf(headers: Headers): string | null {
  const ours = headers.get("x-api-key");
  const azures = headers.get("api-key");
  if (azures === null || azures === "" || azures === ours) return ours;
  return ours === null || ours === "" ? azures : `${ours}, ${azures}`;
}

export function hasApiKey(headers: Headers): boolean {
  return headers.has("x-api-key") || headers.has("api-key");
}
