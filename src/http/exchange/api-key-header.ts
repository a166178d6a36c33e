// The credential in the headers of a request: Authorization, X-API-Key, or api-key, as clients made for Azure send it.
import type { IncomingRequest } from "../../http1/message.ts";
import { asksForWebSocket, offeredProtocols } from "../../websocket/handshake.ts";

type Headers = IncomingRequest["headers"];

/**
 * Returns the key, or null if neither header has one. Two different keys are treated as one repeated field (RFC 9110,
 * 5.3), which is not a key.
 */
export function apiKeyOf(headers: Headers): string | null {
  const ours = headers.get("x-api-key");
  const azures = headers.get("api-key");
  if (azures === null || azures === "" || azures === ours) return ours;
  return ours === null || ours === "" ? azures : `${ours}, ${azures}`;
}

/** The prefix that OpenAI's browser clients put before their key, because they cannot set a header of a WebSocket. */
const keyProtocol = "openai-insecure-api-key.";

/** Returns the value of `Authorization`. Without this header, a WebSocket may send the key among its subprotocols. */
export function authorizationOf({ headers }: Pick<IncomingRequest, "headers">): string | null {
  const said = headers.get("authorization");
  if (said !== null || !asksForWebSocket({ headers })) return said;
  const named = offeredProtocols({ headers }).find((name) => name.startsWith(keyProtocol));
  return named === undefined ? null : `Bearer ${named.slice(keyProtocol.length)}`;
}

export function hasApiKey(headers: Headers): boolean {
  return headers.has("x-api-key") || headers.has("api-key");
}
