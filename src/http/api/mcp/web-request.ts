// Converts between a client's connection and the web's Request and Response objects, which protocol packages use.
import type { ClientStream } from "../../../base/bytes/client-stream.ts";
import type { Cancellation } from "../../../base/cancellation.ts";
import type { IncomingRequest } from "../../../http1/message.ts";
import type { Answer } from "../../exchange/route.ts";

/**
 * Returns the web's Request. `body` is the text, already read; undefined if the request has none. `signal` is aborted
 * when nobody wants the answer any more.
 */
export function webRequest(
  req: IncomingRequest,
  origin: string,
  { body, signal }: { body: string | undefined; signal: AbortSignal },
): Request {
  const headers = new Headers();
  for (const name of req.headers.keys()) headers.set(name, req.headers.get(name) ?? "");
  return new Request(new URL(req.target, origin), {
    ...{ method: req.method, headers, signal },
    ...(body !== undefined && { body }),
  });
}

/** Returns the answer for a response. A response that is no event stream is sent whole. */
export function answerOf(response: Response, clientGone: Cancellation): Answer {
  const { body, headers, status } = response;
  if (!body || !headers.get("content-type")?.startsWith("text/event-stream")) return response;
  const fields = { ...Object.fromEntries(headers), "x-accel-buffering": "no" };
  return { status, headers: fields, begin: (client) => void send(body, client, clientGone) };
}

/** Sends events. Their producer does not wait for the client: the connection buffers and counts the unread events. */
async function send(body: ReadableStream<Uint8Array>, client: ClientStream, clientGone: Cancellation): Promise<void> {
  const reader = body.getReader();
  // The client has left, so an error is ignored.
  const leave = () => void reader.cancel().catch(() => {});
  clientGone.onCancel(leave);
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      client.write(Buffer.from(part.value).toString("latin1"));
    }
    client.end();
  } catch {
    client.abort();
  } finally {
    clientGone.off(leave);
  }
}
