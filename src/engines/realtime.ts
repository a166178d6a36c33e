// Connects to a model server's WebSocket for OpenAI's realtime API.
import type { MessageLinkListener, PausableLink } from "../base/bytes/message-link.ts";
import { GatewayError } from "../base/errors.ts";
import type { RealtimeRequest } from "../domain/models/engine.ts";
import { ConnectError, connectWebSocket } from "../websocket/connect.ts";
import { type HttpTarget, requestHeaders, withQuery } from "./http-engine.ts";

/** The time limit for the TCP connection, the TLS handshake and the server's answer together. */
const connectMs = 10_000;

/** Connects to a server's realtime API. Rejects with an `upstream_error` whose message does not show the address. */
export async function connectRealtime(
  target: HttpTarget,
  { requestId, model, maxMessageBytes, trace }: RealtimeRequest,
  listen: (link: PausableLink) => MessageLinkListener,
): Promise<PausableLink> {
  const path = withQuery(`${target.basePath}/realtime?model=${encodeURIComponent(model)}`, target);
  try {
    return await connectWebSocket({
      url: new URL(path, target.url),
      headers: { ...requestHeaders(target), "x-request-id": requestId, ...trace },
      kind: "text",
      ...{ connectMs, maxMessageBytes, listen },
    });
  } catch (error) {
    throw refusalOf(error, target.name);
  }
}

/**
 * Reports whether the server seems to support realtime, by opening a session. A session without speech costs
 * nothing.
 */
export async function hasRealtime(target: HttpTarget, model: string): Promise<boolean> {
  const silent = { message() {}, drained() {}, closed() {} };
  try {
    const request = { requestId: "look", model, maxMessageBytes: 1024 * 1024 };
    (await connectRealtime(target, request, () => silent)).terminate();
    return true;
  } catch (error) {
    const cause = error instanceof GatewayError ? error.cause : undefined;
    return !(cause instanceof ConnectError && isMissing(cause));
  }
}

/**
 * Reports whether the error means that the path is missing. A 403 does not count: FastAPI sends it for unknown
 * paths, but other servers send it for a wrong key.
 */
function isMissing({ status }: ConnectError): boolean {
  return status === 404 || status === 405 || status === 501;
}

function refusalOf(error: unknown, name: string): unknown {
  if (!(error instanceof ConnectError)) return error;
  const { message } = error;
  const said = isMissing(error)
    ? "The model server has no /realtime."
    : "The model server cannot be talked to over a WebSocket.";
  return new GatewayError("upstream_error", said, { detail: `${name}: ${message}`, cause: error });
}
