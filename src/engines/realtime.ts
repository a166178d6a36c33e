// The WebSocket of OpenAI's realtime events to a server reached over HTTP.
import type { MessageLinkListener, PausableLink } from "../base/bytes/message-link.ts";
import { GatewayError } from "../base/errors.ts";
import type { RealtimeRequest } from "../domain/models/engine.ts";
import { ConnectError, connectWebSocket } from "../websocket/connect.ts";
import { type HttpTarget, requestHeaders, withQuery } from "./http-engine.ts";

/** The time for the connection, TLS and the server's answer together. */
const connectMs = 10_000;

/**
 * Connects to a server's realtime API. Rejects with an `upstream_error` that says only that the server cannot or may
 * not be reached.
 */
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

/** Reports whether a server has the path, as far as it tells. A session without speech costs nothing. */
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
 * Reports whether an error says that the path is missing. FastAPI's servers answer 403 to a WebSocket on an unknown
 * path, but other servers do so for a wrong key, so 403 does not count.
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
