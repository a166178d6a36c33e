// A server on a free port, for the tests of this folder: what it was asked, what went wrong, raw connections to it.

import { ByteSpan } from "../../../src/base/bytes/byte-span.ts";
import type { IncomingRequest, PassableRequest, Reply } from "../../../src/http1/message.ts";
import { type Http1Server, type MalformedFault, startHttp1Server } from "../../../src/http1/server/server.ts";
import type { Http1Limits } from "../../../src/http1/server/server-limits.ts";
import { openRaw, type RawConnection } from "../../hostile/raw-client.ts";

export interface TestHttp1Server extends AsyncDisposable {
  server: Http1Server;
  url: string;
  requests: IncomingRequest[];
  faults: unknown[];
  malformed: MalformedFault[];
  open(): Promise<RawConnection>;
}

export function startTestServer(
  onRequest: (request: PassableRequest, reply: Reply) => void,
  limits: Partial<Http1Limits> = {},
): TestHttp1Server {
  const requests: IncomingRequest[] = [];
  const faults: unknown[] = [];
  const malformed: MalformedFault[] = [];
  const server = startHttp1Server({
    hostname: "127.0.0.1",
    port: 0,
    limits,
    onRequest(request, reply) {
      requests.push(request);
      onRequest(request, reply);
    },
    onMalformed(fault) {
      malformed.push(fault);
      return { headers: { "content-type": "text/plain" }, body: fault.reason };
    },
    onFault: (error) => void faults.push(error),
  });
  const url = `http://127.0.0.1:${server.port}`;
  return {
    server,
    url,
    requests,
    faults,
    malformed,
    open: () => openRaw(url),
    [Symbol.asyncDispose]: async () => server.close(),
  };
}

/** Answers with what was sent: method, target and body. */
export function echo(request: IncomingRequest, reply: Reply): void {
  const answer = (body: ByteSpan) =>
    reply.send(200, { "content-type": "text/plain" }, `${request.method} ${request.target} ${body.text}`);
  try {
    const body = request.readBody(1_000_000);
    if (body instanceof ByteSpan) answer(body);
    else body.then(answer, (error: Error) => reply.send(400, {}, error.message));
  } catch (error) {
    reply.send(400, {}, (error as Error).message);
  }
}

export const get = (target: string, lines: readonly string[] = []) =>
  `${[`GET ${target} HTTP/1.1`, "Host: x", ...lines].join("\r\n")}\r\n\r\n`;

export const post = (target: string, body: string, lines: readonly string[] = []) =>
  `${[`POST ${target} HTTP/1.1`, "Host: x", `Content-Length: ${Buffer.byteLength(body)}`, ...lines].join("\r\n")}\r\n\r\n${body}`;

/** Waits until `look` gives something. */
export async function until<T>(look: () => T | Promise<T>, what: string, deadlineMs = 5_000): Promise<NonNullable<T>> {
  const endMs = performance.now() + deadlineMs;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > endMs) throw new Error(`Not within ${deadlineMs} ms: ${what}`);
    await Bun.sleep(2);
  }
}
