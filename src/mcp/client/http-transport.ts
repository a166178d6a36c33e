// HTTP transport to an MCP server: to a single origin, with limits on bytes and time, and with the caller's
// credentials.
import { extractWWWAuthenticateParams, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { monotonicMs } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import { type AnswerTimeouts, ClientError } from "../../http1/client/client-contract.ts";
import { type Call, currentCall } from "./call.ts";
import type { Credentials } from "./connecting.ts";
import { connectTimeoutMs } from "./connection.ts";
import { PacedStream } from "./paced-stream.ts";
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
/** Milliseconds within which `maxResults` applies to all streams together that belong to no call. */
const countedMs = 60_000;
/** Minimum milliseconds before a stream is opened again, even if the server asks for less. */
const minRetryMs = 100;
/** Maximum messages of a response that is no stream: the answer, and what an earlier revision sends along. */
const maxBatch = 100;
const withoutBody = new Set([204, 205, 304]);

export class HttpTransport implements Line {
  readonly transport: StreamableHTTPClientTransport;
  readonly #options: HttpTransportOptions;
  readonly #origin: string;
  readonly #beside = new TotalBeside();
  #fault: GatewayError | undefined;

  constructor(options: HttpTransportOptions) {
    this.#options = options;
    const url = new URL(options.url);
    this.#origin = url.origin;
    this.transport = new StreamableHTTPClientTransport(url, {
      fetch: (to, init) => this.#fetch(new URL(to), init),
      reconnectionScheduler: (reconnect, delayMs) => {
        const timer = setTimeout(reconnect, Math.max(delayMs, minRetryMs));
        return () => clearTimeout(timer);
      },
    });
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
        return await this.#admitted(first, headers, call, init.method);
      first.body.cancel();
      const again = await credentials.headers();
      const second = await this.#send(url, init, again, call);
      if (second.status === 401) await credentials.refused(again);
      return await this.#admitted(second, again, call, init.method);
    } catch (error) {
      throw this.#failed(this.#faultOf(error), call);
    }
  }

  /** Returns the response. Rejects if it requires scopes that the user has not granted (RFC 6750, 3.1). */
  async #admitted(
    answer: WayAnswer,
    headers: Readonly<Record<string, string>>,
    call: Call | undefined,
    method: string | undefined,
  ): Promise<Response> {
    const response = this.#responseOf(answer, call, method);
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

  #responseOf({ status, headers, body }: WayAnswer, call: Call | undefined, method: string | undefined): Response {
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
    // The SDK reads each response to a GET as a stream, whatever its type.
    const isStreamed = method === "GET" || /^\s*text\/event-stream\b/i.test(keptHeaders.get("content-type") ?? "");
    if (call) call.isStreamed = isStreamed;
    if (withoutBody.has(status)) {
      body.cancel();
      return new Response(null, { status, headers: keptHeaders });
    }
    const init = { status, headers: keptHeaders };
    const content = this.#streamOf(body, isStreamed, call);
    return isStreamed ? new Response(content, init) : new ShortBatch(content, init);
  }

  /** Returns the body as a stream, and counts its bytes: for each event, and in total. */
  #streamOf(body: BodySource, isStreamed: boolean, call: Call | undefined): ReadableStream<Uint8Array> {
    const { maxResultBytes } = this.#options;
    const bytes = new StreamedBytes(isStreamed, call, call ?? this.#beside);
    const refusalOf = (piece: ByteSpan): GatewayError | undefined => {
      const { ofOne, ofAll } = bytes.count(piece.view);
      if (ofOne > maxResultBytes || ofAll > maxResults * maxResultBytes) {
        return this.#error(`gave more than ${maxResultBytes} bytes, the most that a result of it may have`);
      }
      return bytes.hold(piece.length);
    };
    let paced: PacedStream | undefined;
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        paced = isStreamed ? new PacedStream(body, controller) : undefined;
        body.flow({
          data: (piece) => {
            const refusal = refusalOf(piece);
            if (refusal) {
              body.cancel();
              paced?.cancel();
              bytes.release();
              // Fail the call first; otherwise the SDK's client would request the rest of the stream.
              call?.fail(refusal);
              this.#failed(refusal, call);
              controller.error(refusal);
              if (!call) this.#drop();
              return;
            }
            // Copy the bytes, because the buffer is reused. (`Uint8Array.from` would copy them one by one.)
            const copy = new Uint8Array(piece.view);
            if (paced) paced.push(copy);
            else {
              controller.enqueue(copy);
              if ((controller.desiredSize ?? 0) <= 0) body.pause();
            }
          },
          end: () => {
            bytes.release();
            if (paced) paced.end(() => controller.close());
            else controller.close();
          },
          fail: (error) => {
            bytes.release();
            const fault = this.#failed(this.#faultOf(error), call);
            if (paced) paced.end(() => controller.error(fault));
            else controller.error(fault);
          },
        });
      },
      pull: () => (paced ? paced.next() : body.resume()),
      cancel: () => {
        paced?.cancel();
        bytes.release();
        body.cancel();
      },
    });
  }

  /** Ends the connection, so that the SDK's client does not open the stream again. */
  #drop(): void {
    // Ignore the error: the transport only has to be closed.
    void this.transport.close().catch(() => {});
    this.#options.way.close();
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

const [lineFeed, carriageReturn] = [10, 13];

/** A response that is no stream. Reading it in one go must not take long. */
class ShortBatch extends Response {
  override async json(): Promise<unknown> {
    const read: unknown = await super.json();
    if (!Array.isArray(read) || read.length <= maxBatch) return read;
    throw new Error(`The response has ${read.length} messages, and at most ${maxBatch} are read.`);
  }
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

/** Number of bytes of several streams. Each short event counts as `minCounted`. */
interface StreamedTotal {
  streamedBytes: number;
}

/** The total of streams that belong to no call. It begins anew after `countedMs`, because these streams have no end. */
class TotalBeside implements StreamedTotal {
  #bytes = 0;
  #sinceMs = monotonicMs();

  get streamedBytes(): number {
    if (monotonicMs() - this.#sinceMs < countedMs) return this.#bytes;
    this.#sinceMs = monotonicMs();
    this.#bytes = 0;
    return 0;
  }

  set streamedBytes(bytes: number) {
    this.#bytes = bytes;
  }
}

/** Counts the bytes of one response, of its current event and in the total, in a memory account. */
class StreamedBytes {
  readonly #isStreamed: boolean;
  readonly #call: Call | undefined;
  readonly #total: StreamedTotal;
  #ofOne = 0;
  #held = 0;
  #lastByte = 0;

  /** `total` includes earlier streams, so that a server gains nothing by a new stream. */
  constructor(isStreamed: boolean, call: Call | undefined, total: StreamedTotal) {
    this.#isStreamed = isStreamed;
    this.#call = call;
    this.#total = total;
  }

  count(piece: Buffer): { ofOne: number; ofAll: number } {
    if (!this.#isStreamed) {
      this.#ofOne += piece.length;
      return { ofOne: this.#ofOne, ofAll: this.#ofOne };
    }
    const { events, afterLast } = this.#eventsIn(piece);
    this.#ofOne = events > 0 ? afterLast : this.#ofOne + piece.length;
    this.#total.streamedBytes += Math.max(piece.length, minCounted * events);
    return { ofOne: this.#ofOne, ofAll: this.#total.streamedBytes };
  }

  /** Returns the number of events that end in the piece, and of bytes after the last one. An empty line ends an event. */
  #eventsIn(piece: Buffer): { events: number; afterLast: number } {
    let [events, from, last] = [0, 0, this.#lastByte];
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at] ?? 0;
      const endsLine = byte === carriageReturn || (byte === lineFeed && last !== carriageReturn);
      if (endsLine && (last === lineFeed || last === carriageReturn)) {
        events++;
        from = at + 1;
      }
      last = byte;
    }
    this.#lastByte = last;
    return { events, afterLast: piece.length - from };
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
