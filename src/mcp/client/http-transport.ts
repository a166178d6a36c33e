// HTTP transport to an MCP server: to a single origin, with limits on bytes and time, and with the caller's
// credentials.
import { extractWWWAuthenticateParams, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import { type AnswerTimeouts, ClientError } from "../../http1/client/client-contract.ts";
import { type Call, currentCall } from "./call.ts";
import type { Credentials } from "./connecting.ts";
import { connectTimeoutMs } from "./connection.ts";
import type { Line } from "./transport.ts";

/** Sends HTTP requests to the server, directly or through a node's tunnel. */
export interface HttpWay {
  /**
   * Sends a request. Rejects with a ClientError or a GatewayError. `cancellation` works until the response headers
   * arrive.
   */
  send(
    request: { method: string; path: string; headers: Readonly<Record<string, string>>; body?: string },
    timeouts: AnswerTimeouts,
    cancellation: Cancellation,
  ): PromiseLike<WayAnswer> | WayAnswer;
  close(): void;
}

interface WayAnswer {
  readonly status: number;
  readonly headers: { get(name: string): string | null | undefined };
  readonly body: BodySource;
}

export interface HttpTransportOptions {
  readonly server: string;
  readonly url: string;
  readonly way: HttpWay;
  readonly credentials: Credentials;
  readonly maxResultBytes: number;
}

/** Milliseconds of silence after which a notification stream is opened again. */
const silenceMs = 300_000;
const goodbyeMs = 2_000;
/**
 * Maximum bytes of a stream, as a multiple of the largest allowed result. A stream may also contain progress, logs and
 * notifications.
 */
const maxResults = 4;
/** Minimum bytes that an event counts as, because even short events cost work. */
const minCounted = 1_024;
const withoutBody = new Set([204, 205, 304]);

export class HttpTransport implements Line {
  readonly transport: StreamableHTTPClientTransport;
  readonly #options: HttpTransportOptions;
  readonly #origin: string;
  #fault: GatewayError | undefined;

  constructor(options: HttpTransportOptions) {
    this.#options = options;
    const url = new URL(options.url);
    this.#origin = url.origin;
    this.transport = new StreamableHTTPClientTransport(url, { fetch: (to, init) => this.#fetch(new URL(to), init) });
  }

  fault(): GatewayError | undefined {
    return this.#fault;
  }

  async close(): Promise<void> {
    // Limit the time: the SDK sets no timeout for ending a session.
    await Promise.race([this.transport.terminateSession().catch(() => {}), Bun.sleep(goodbyeMs)]);
    this.#options.way.close();
  }

  async #fetch(url: URL, init: RequestInit = {}): Promise<Response> {
    const call = currentCall.getStore();
    try {
      // The SDK's client calls this function again for a redirect. Only redirects within the origin are followed.
      if (url.origin !== this.#origin) throw this.#error("leads to another origin, where it is not followed");
      const { credentials } = this.#options;
      const headers = await credentials.headers();
      const first = await this.#send(url, init, headers, call);
      if (first.status !== 401 || !(await credentials.refused(headers)))
        return await this.#admitted(first, headers, call);
      first.body.cancel();
      const again = await credentials.headers();
      const second = await this.#send(url, init, again, call);
      if (second.status === 401) await credentials.refused(again);
      return await this.#admitted(second, again, call);
    } catch (error) {
      throw this.#failed(this.#faultOf(error), call);
    }
  }

  /** Returns the response. Rejects if it requires scopes that the user has not granted (RFC 6750, 3.1). */
  async #admitted(
    answer: WayAnswer,
    headers: Readonly<Record<string, string>>,
    call: Call | undefined,
  ): Promise<Response> {
    const response = this.#responseOf(answer, call);
    const { error, scope } = response.status === 403 ? extractWWWAuthenticateParams(response) : {};
    if (error !== "insufficient_scope" || scope === undefined) return response;
    await response.body?.cancel();
    await this.#options.credentials.insufficient(headers, scope);
    throw this.#error("wants scopes that its credentials do not have");
  }

  async #send(
    url: URL,
    { method = "GET", headers, body, signal }: RequestInit,
    credentials: Readonly<Record<string, string>>,
    call: Call | undefined,
  ): Promise<WayAnswer> {
    const cancellation = new Cancellation();
    const abort = () => cancellation.cancel(signal?.reason);
    if (signal?.aborted) throw signal.reason;
    signal?.addEventListener("abort", abort);
    const over = () => signal?.removeEventListener("abort", abort);
    const own = Object.fromEntries(new Headers(headers));
    const timeouts: AnswerTimeouts = call
      ? { firstByteTimeoutMs: call.hardMs, idleTimeoutMs: call.hardMs }
      : { firstByteTimeoutMs: connectTimeoutMs, idleTimeoutMs: silenceMs };
    const path = `${url.pathname}${url.search}`;
    // Refuse compression, because a small compressed body may expand to any size.
    const sent = { ...credentials, ...own, "accept-encoding": "identity" };
    const content = typeof body === "string" ? { body } : {};
    const { way } = this.#options;
    try {
      const answer = await way.send({ method, path, headers: sent, ...content }, timeouts, cancellation);
      // Once the response headers have arrived, a cancellation must stop the body.
      cancellation.onCancel(() => answer.body.cancel());
      return { status: answer.status, headers: answer.headers, body: new WatchedBody(answer.body, over) };
    } catch (error) {
      over();
      throw error;
    }
  }

  #responseOf({ status, headers, body }: WayAnswer, call: Call | undefined): Response {
    const coding = headers.get("content-encoding") ?? "identity";
    if (coding !== "identity" || status < 200 || status > 599) {
      body.cancel();
      throw this.#error(
        coding === "identity" ? `answered with status ${status}` : "compressed its answer, which was not asked for",
      );
    }
    const keptHeaders = new Headers();
    for (const name of ["content-type", "location", "mcp-session-id", "www-authenticate"]) {
      const value = headers.get(name);
      if (value != null) keptHeaders.set(name, value);
    }
    const isStreamed = /^\s*text\/event-stream\b/i.test(keptHeaders.get("content-type") ?? "");
    if (call) call.isStreamed = isStreamed;
    if (withoutBody.has(status)) {
      body.cancel();
      return new Response(null, { status, headers: keptHeaders });
    }
    return new Response(this.#streamOf(body, isStreamed, call), { status, headers: keptHeaders });
  }

  /** Returns the body as a stream, and counts its bytes: for each event, and in total. */
  #streamOf(body: BodySource, isStreamed: boolean, call: Call | undefined): ReadableStream<Uint8Array> {
    const { maxResultBytes } = this.#options;
    const bytes = new StreamedBytes(isStreamed, call);
    const refusalOf = (piece: ByteSpan): GatewayError | undefined => {
      const { ofOne, ofAll } = bytes.count(piece.view);
      if (ofOne > maxResultBytes || ofAll > maxResults * maxResultBytes) {
        return this.#error(`gave more than ${maxResultBytes} bytes, the most that a result of it may have`);
      }
      return bytes.hold(piece.length);
    };
    return new ReadableStream<Uint8Array>({
      start: (controller) =>
        body.flow({
          data: (piece) => {
            const refusal = refusalOf(piece);
            if (refusal) {
              body.cancel();
              bytes.release();
              // Fail the call first; otherwise the SDK's client would request the rest of the stream.
              call?.fail(refusal);
              this.#failed(refusal, call);
              controller.error(refusal);
              return;
            }
            // Copy the bytes, because the buffer is reused. (`Uint8Array.from` would copy them one by one.)
            controller.enqueue(new Uint8Array(piece.view));
            if ((controller.desiredSize ?? 0) <= 0) body.pause();
          },
          end: () => {
            bytes.release();
            controller.close();
          },
          fail: (error) => {
            bytes.release();
            controller.error(this.#failed(this.#faultOf(error), call));
          },
        }),
      pull: () => body.resume(),
      cancel: () => {
        bytes.release();
        body.cancel();
      },
    });
  }

  /** Returns the error to throw. If no call is running, it is also stored for the caller that opens the connection. */
  #failed(fault: unknown, call: Call | undefined): unknown {
    if (!call && fault instanceof GatewayError) this.#fault = fault;
    return fault;
  }

  #faultOf(error: unknown): unknown {
    if (!(error instanceof ClientError)) return error;
    const isLate = error.fault === "first_byte_timeout" || error.fault === "idle_timeout";
    if (isLate) return this.#error("did not answer in time", error, "upstream_timeout");
    return this.#error(error.fault === "connect" ? "cannot be reached" : "broke off its answer", error);
  }

  #error(what: string, cause?: Error, code: "upstream_error" | "upstream_timeout" = "upstream_error"): GatewayError {
    const message = `The MCP server "${this.#options.server}" ${what}.`;
    return new GatewayError(code, message, cause && { cause, detail: cause.message });
  }
}

const lineFeed = 10;

function eventsIn(piece: Buffer): number {
  let count = 0;
  for (let end = piece.indexOf("\n\n"); end >= 0; end = piece.indexOf("\n\n", end + 2)) count++;
  return count;
}

/** Calls a listener when the body ends, so that a long-lived abort signal does not keep the body in memory. */
class WatchedBody implements BodySource {
  readonly #body: BodySource;
  readonly #over: () => void;

  constructor(body: BodySource, over: () => void) {
    this.#body = body;
    this.#over = over;
  }

  flow(sink: BodySink): void {
    this.#body.flow({
      data: (bytes) => sink.data(bytes),
      end: () => {
        this.#over();
        sink.end();
      },
      fail: (error) => {
        this.#over();
        sink.fail(error);
      },
    });
  }

  pause(): void {
    this.#body.pause();
  }

  resume(): void {
    this.#body.resume();
  }

  cancel(): void {
    this.#over();
    this.#body.cancel();
  }
}

/** Counts the bytes of one response, of its current event and in total, in a memory account. */
class StreamedBytes {
  readonly #isStreamed: boolean;
  readonly #call: Call | undefined;
  #ofOne = 0;
  #ofAll = 0;
  #held = 0;

  constructor(isStreamed: boolean, call: Call | undefined) {
    this.#isStreamed = isStreamed;
    this.#call = call;
  }

  count(piece: Buffer): { ofOne: number; ofAll: number } {
    this.#ofAll += Math.max(piece.length, this.#isStreamed ? minCounted * eventsIn(piece) : 0);
    // Look for the end of an event only within one piece. An event may count as too long, but never as too short.
    const end = this.#isStreamed ? piece.lastIndexOf("\n\n") : -1;
    const isEnded = this.#isStreamed && piece.length === 1 && piece[0] === lineFeed;
    this.#ofOne = end >= 0 || isEnded ? piece.length - Math.max(end, 0) : this.#ofOne + piece.length;
    return { ofOne: this.#ofOne, ofAll: this.#ofAll };
  }

  hold(length: number): GatewayError | undefined {
    // Notification streams have a separate limit and are not buffered.
    if (this.#call) return this.#call.hold(length);
    if (this.#isStreamed) return undefined;
    this.#held += length;
    return bufferedBytes.bounded.take("answers", length);
  }

  release(): void {
    if (this.#held > 0) bufferedBytes.bounded.release("answers", this.#held);
    this.#held = 0;
  }
}
