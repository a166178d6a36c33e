// The credential among the headers of a request: Authorization, X-API-Key, or api-key, as clients made for Azure send it.
import type { IncomingRequest } from "../../http1/message.ts";
import { asksForWebSocket, offeredProtocols } from "../../websocket/handshake.ts";

type Headers = IncomingRequest["headers"];

/** The key, or null where neither has one. Two that differ are told as one field that comes twice (RFC 9110, 5.3), which is no key. */
export function apiKeyOf(headers: Headers): string | null {
  const ours = headers.get("x-api-key");
  const azures = headers.get("api-key");
  if (azures === null || azures === "" || azures === ours) return ours;
  return ours === null || ours === "" ? azures : `${ours}, ${azures}`;
}

/** By it OpenAI's clients in browsers name their key: they can set no header of a WebSocket. */
const keyProtocol = "openai-insecure-api-key.";

/** The value of `Authorization`; where there is none, a WebSocket may name the key among its subprotocols. */
export function authorizationOf({ headers }: Pick<IncomingRequest, "headers">): string | null {
  const said = headers.get("authorization");
  if (said !== null || !asksForWebSocket({ headers })) return said;
  const named = offeredProtocols({ headers }).find((name) => name.startsWith(keyProtocol));
  return named === undefined ? null : `Bearer ${named.slice(keyProtocol.length)}`;
}

export function hasApiKey(headers: Headers): boolean {
  return headers.has("x-api-key") || headers.has("api-key");
}
