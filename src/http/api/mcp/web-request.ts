// Converts between the gateway's own requests and answers and the standard Request and Response, which MCP libraries
// use.
import type { ClientStream } from "../../../base/bytes/client-stream.ts";
import type { Cancellation } from "../../../base/cancellation.ts";
import type { IncomingRequest } from "../../../http1/message.ts";
import type { Answer } from "../../exchange/route.ts";

/**
 * Returns a standard Request. `body` is the text that was read, or undefined. `signal` is aborted when the
 * answer is no longer wanted.
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

/** Converts a standard Response into an answer. Only an event stream is streamed. */
export function answerOf(response: Response, clientGone: Cancellation): Answer {
  const { body, headers, status } = response;
  if (!body || !headers.get("content-type")?.startsWith("text/event-stream")) return response;
  const fields = { ...Object.fromEntries(headers), "x-accel-buffering": "no" };
  return { status, headers: fields, begin: (client) => void send(body, client, clientGone) };
}

/**
 * Sends an event stream. Events that the client has not read are buffered, because their producer does not wait for the
 * client.
 */
async function send(body: ReadableStream<Uint8Array>, client: ClientStream, clientGone: Cancellation): Promise<void> {
  const reader = body.getReader();
  // An error of the cancellation is ignored, because the client has left.
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
