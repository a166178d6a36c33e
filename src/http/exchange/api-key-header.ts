// Reads the credential of a request from `Authorization`, `X-API-Key` or `api-key` (Azure clients).
import type { IncomingRequest } from "../../http1/message.ts";
import { asksForWebSocket, offeredProtocols } from "../../websocket/handshake.ts";

type Headers = IncomingRequest["headers"];

/**
 * Returns the key, or null if there is none. Two different keys are joined like a repeated field (RFC 9110,
 * 5.3), which is not a valid key.
 */
export function apiKeyOf(headers: Headers): string | null {
  const ours = headers.get("x-api-key");
  const azures = headers.get("api-key");
  if (azures === null || azures === "" || azures === ours) return ours;
  return ours === null || ours === "" ? azures : `${ours}, ${azures}`;
}

/** The prefix of the key in OpenAI's browser clients, which cannot set headers of a WebSocket. */
const keyProtocol = "openai-insecure-api-key.";

/** Returns the `Authorization` header. For a WebSocket without one, returns the key in its subprotocols. */
export function authorizationOf({ headers }: Pick<IncomingRequest, "headers">): string | null {
  const said = headers.get("authorization");
  if (said !== null || !asksForWebSocket({ headers })) return said;
  const named = offeredProtocols({ headers }).find((name) => name.startsWith(keyProtocol));
  return named === undefined ? null : `Bearer ${named.slice(keyProtocol.length)}`;
}

export function hasApiKey(headers: Headers): boolean {
  return headers.has("x-api-key") || headers.has("api-key");
}
