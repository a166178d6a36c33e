// The opening handshake of RFC 6455. The server checks the request, and the client checks the answer.
import { createHash, randomBytes } from "node:crypto";
import type { HeaderFields, HeaderLines, IncomingRequest } from "../http1/message.ts";

const version = "13";
/** This constant comes from RFC 6455, 1.3. */
const acceptGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

export type ServerHandshake = { headers: HeaderFields } | { problem: string; headers: HeaderFields };

/**
 * Checks a request for an upgrade to a WebSocket. `protocol` is the only subprotocol that this endpoint supports, or
 * undefined if it supports none. Returns the header fields of the answer with status 101. If the request has a fault,
 * returns the fault as a sentence for the client, and the header fields of the refusal.
 */
export function checkUpgradeRequest(request: IncomingRequest, protocol: string | undefined): ServerHandshake {
  const { headers } = request;
  const key = headers.get("sec-websocket-key");
  const refuse = (problem: string) => ({ problem, headers: { "sec-websocket-version": version } });
  if (!hasToken(headers, "upgrade", "websocket") || !hasToken(headers, "connection", "upgrade")) {
    return refuse(
      "This endpoint is for WebSockets: the request must have `Connection: Upgrade` and `Upgrade: websocket`.",
    );
  }
  // A connection of HTTP/1.0 cannot be upgraded, whatever the request asks for (RFC 9110, 7.8).
  if (request.version === "1.0") return refuse("A WebSocket begins with a request of HTTP/1.1.");
  if (request.method !== "GET" || request.hasBody) return refuse("A WebSocket begins with a GET without a body.");
  if (headers.get("sec-websocket-version") !== version) return refuse(`Sec-WebSocket-Version must be ${version}.`);
  if (key === null || !isKey(key)) return refuse("Sec-WebSocket-Key must be 16 bytes as base64, once.");
  const accepted = { upgrade: "websocket", "sec-websocket-accept": acceptOf(key) };
  if (protocol === undefined) return { headers: accepted };
  if (!tokensOf(headers.get("sec-websocket-protocol")).includes(protocol)) {
    return refuse(
      `Sec-WebSocket-Protocol must offer ${protocol}: versions of Headrace that have none in common cannot talk.`,
    );
  }
  return { headers: { ...accepted, "sec-websocket-protocol": protocol } };
}

/** Returns the subprotocols that a request offers, beginning with the one that it prefers most. */
export function offeredProtocols({ headers }: Pick<IncomingRequest, "headers">): string[] {
  return tokensOf(headers.get("sec-websocket-protocol"));
}

/** Reports whether a request asks for a WebSocket, even if the request is not valid. */
export function asksForWebSocket({ headers }: Pick<IncomingRequest, "headers">): boolean {
  return hasToken(headers, "upgrade", "websocket");
}

export function newKey(): string {
  return randomBytes(16).toString("base64");
}

/** Returns the header fields with which a client requests the upgrade. */
export function upgradeRequestFields(key: string, protocol: string | undefined): HeaderFields {
  return {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": version,
    "sec-websocket-key": key,
    ...(protocol === undefined ? {} : { "sec-websocket-protocol": protocol }),
  };
}

/** Returns the fault in an answer with status 101 to an upgrade request, or undefined if the answer is correct. */
export function problemOfUpgradeAnswer(
  headers: HeaderLines,
  key: string,
  protocol: string | undefined,
): string | undefined {
  if (headers.get("upgrade")?.toLowerCase() !== "websocket" || !hasToken(headers, "connection", "upgrade")) {
    return "it upgraded to something else";
  }
  if (headers.get("sec-websocket-accept") !== acceptOf(key)) return "its Sec-WebSocket-Accept is wrong";
  if (headers.has("sec-websocket-extensions")) return "it chose an extension that was not offered";
  if (headers.get("sec-websocket-protocol") !== (protocol ?? null)) {
    return protocol === undefined ? "it chose a subprotocol that was not offered" : `it does not speak ${protocol}`;
  }
  return undefined;
}

function acceptOf(key: string): string {
  return createHash("sha1")
    .update(key + acceptGuid)
    .digest("base64");
}

/**
 * Reports whether a key is 16 bytes in base64. Such a key has 22 characters, of which the last ends in four zero bits,
 * and then the padding.
 */
function isKey(key: string): boolean {
  return /^[A-Za-z0-9+/]{21}[AQgw]==$/.test(key);
}

function hasToken(headers: HeaderLines, name: string, token: string): boolean {
  return tokensOf(headers.get(name)?.toLowerCase() ?? null).includes(token);
}

function tokensOf(list: string | null): string[] {
  return list === null ? [] : list.split(",").map((entry) => entry.trim());
}
