// The WebSocket of OpenAI's realtime events at a server that is reached over HTTP.
import type { MessageLinkListener, PausableLink } from "../base/bytes/message-link.ts";
import { GatewayError } from "../base/errors.ts";
import type { RealtimeRequest } from "../domain/models/engine.ts";
import { ConnectError, connectWebSocket } from "../websocket/connect.ts";
import { type HttpTarget, requestHeaders, withQuery } from "./http-engine.ts";

/** The connection, TLS and the server's answer together. */
const connectMs = 10_000;

/** Rejects with `upstream_error`, which says no more than that the server cannot, or may not, be talked to. */
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

function refusalOf(error: unknown, name: string): unknown {
  if (!(error instanceof ConnectError)) return error;
  const { message, status } = error;
  const said =
    status === 404 || status === 405 || status === 426
      ? "The model server has no /realtime."
      : "The model server cannot be talked to over a WebSocket.";
  return new GatewayError("upstream_error", said, { detail: `${name}: ${message}`, cause: error });
}
