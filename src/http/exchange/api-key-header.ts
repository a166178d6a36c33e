// Reads the credential of a request from `Authorization`, `X-API-Key` or `api-key` (Azure clients).
import type { IncomingRequest } from "../../http1/message.ts";
import { asksForWebSocket, offeredProtocols } from "../../websocket/handshake.ts";

type Headers = IncomingRequest["headers"];

/**
 * Returns the key, or null if there is none. If `X-API-Key` and `api-key` contain two different keys, these are joined
 * like a repeated field (RFC 9110, 5.3). The result is no valid key.
 */
export function apiKeyOf(headers: Headers): string | null {
  const ours = headers.get("x-api-key");
  const azures = headers.get("api-key");
  if (azures === null || azures === "" || azures === ours) return ours;
  return ours === null || ours === "" ? azures : `${ours}, ${azures}`;
}

/**
 * Prefix of the subprotocol in which OpenAI's browser clients send their key. A browser cannot set headers of a
 * WebSocket request.
 */
const keyProtocol = "openai-insecure-api-key.";

/**
 * Returns the `Authorization` header. If a WebSocket request has none, returns the key among its subprotocols as a
 * bearer token.
 */
export function authorizationOf({ headers }: Pick<IncomingRequest, "headers">): string | null {
  const said = headers.get("authorization");
  if (said !== null || !asksForWebSocket({ headers })) return said;
  const named = offeredProtocols({ headers }).find((name) => name.startsWith(keyProtocol));
  return named === undefined ? null : `Bearer ${named.slice(keyProtocol.length)}`;
}

export function hasApiKey(headers: Headers): boolean {
  return headers.has("x-api-key") || headers.has("api-key");
}
