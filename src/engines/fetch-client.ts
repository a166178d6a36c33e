// An HTTP client that uses the runtime's `fetch`, for model servers that do not work with Http1Client.

import type { BodySink, BodySource } from "../base/bytes/body-source.ts";
import { ByteSpan } from "../base/bytes/byte-span.ts";
import type { Cancellation } from "../base/cancellation.ts";
import { type IndexedItem, IndexedSet, noIndex } from "../base/indexed-set.ts";
import {
  type AnswerTimeouts,
  ClientError,
  type ClientErrorMap,
  type ClientRequest,
  type ClientResponse,
  type HttpClient,
} from "../http1/client/client-contract.ts";

export interface FetchClientOptions {
  /** The path of a Unix domain socket to connect to instead of the origin's host. */
  unix?: string | undefined;
  errors: ClientErrorMap;
}

interface UnderWay extends IndexedItem {
  readonly controller: AbortController;
}

export class FetchClient implements HttpClient {
  readonly #origin: string;
  readonly #options: FetchClientOptions;
  readonly #underWay = new IndexedSet<UnderWay>();
  #closed = false;

  /** `origin`: scheme, host and port. */
  constructor(origin: string, options: FetchClientOptions) {
    this.#origin = origin;
    this.#options = options;
  }

  async send(
    request: ClientRequest,
    { firstByteTimeoutMs, idleTimeoutMs }: AnswerTimeouts,
    cancellation: Cancellation,
  ): Promise<ClientResponse> {
    cancellation.throwIfCancelled();
    if (this.#closed) throw this.#options.errors(closedError());
    const controller = new AbortController();
    const cancel = () => controller.abort(cancellation.reason);
    cancellation.onCancel(cancel);
    const underWay = { setIndex: noIndex, controller };
    this.#underWay.add(underWay);
    // The timer is cleared once the status line arrives. AbortSignal.timeout would also abort the body.
    const timer = setTimeout(
      () => controller.abort(new ClientError("first_byte_timeout", "no answer began in time")),
      firstByteTimeoutMs,
    );
    try {
      const response = await fetch(this.#origin + request.path, {
        method: request.method,
        headers: {
          ...request.headers,
          ...request.ownHeaders,
          ...(request.requestId ? { "x-request-id": request.requestId } : {}),
        },
        ...bodyOf(request),
        signal: controller.signal,
        redirect: "manual",
        decompress: false,
        ...(this.#options.unix ? { unix: this.#options.unix } : {}),
      });
      const over = () => this.#underWay.delete(underWay);
      const body = new FetchedBody(response, controller, idleTimeoutMs, this.#options.errors, over);
      return { status: response.status, headers: response.headers, body };
    } catch (error) {
      this.#underWay.delete(underWay);
      if (cancellation.cancelled) throw cancellation.reason;
      throw this.#options.errors(error instanceof ClientError ? error : faultOf(error, false));
    } finally {
      clearTimeout(timer);
      cancellation.off(cancel);
    }
  }

  close(): void {
    this.#closed = true;
    for (const { controller } of this.#underWay) controller.abort(closedError());
  }
}

function bodyOf({ body, content }: Pick<ClientRequest, "body" | "content">): { body?: BodyInit } {
  if (content) return { body: streamOf(content.open()) };
  if (body === undefined) return {};
  return { body: typeof body === "string" ? body : (body.solid.view as Uint8Array<ArrayBuffer>) };
}

/** Returns the source as a stream. A piece is requested only after the previous piece was read. */
function streamOf(source: BodySource): ReadableStream<Uint8Array> {
  let flows = false;
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (flows) {
          source.resume();
          return;
        }
        flows = true;
        source.flow({
          data(bytes) {
            // The bytes are copied, because the source reuses its buffer after this call.
            controller.enqueue(new Uint8Array(bytes.view));
            source.pause();
          },
          end: () => controller.close(),
          fail: (error) => controller.error(error),
        });
      },
      cancel: () => source.cancel(),
    },
    { highWaterMark: 0 },
  );
}

class FetchedBody implements BodySource {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  readonly #controller: AbortController;
  readonly #idleTimeoutMs: number;
  readonly #errors: ClientErrorMap;
  readonly #over: () => void;
  #cancelled = false;
  /** A promise, set while the body is paused, which resolves when the body is resumed. */
  #resumed: Promise<void> | undefined;
  #resume: (() => void) | undefined;

  constructor(
    response: Response,
    controller: AbortController,
    idleTimeoutMs: number,
    errors: ClientErrorMap,
    over: () => void,
  ) {
    this.#reader = response.body?.getReader();
    this.#controller = controller;
    this.#idleTimeoutMs = idleTimeoutMs;
    this.#errors = errors;
    this.#over = over;
  }

  flow(sink: BodySink): void {
    void this.#pump(sink);
  }

  pause(): void {
    this.#resumed ??= new Promise((resolve) => {
      this.#resume = resolve;
    });
  }

  resume(): void {
    this.#resume?.();
    this.#resumed = undefined;
    this.#resume = undefined;
  }

  cancel(): void {
    if (this.#cancelled) return;
    this.#cancelled = true;
    this.#over();
    this.#controller.abort();
    this.resume();
  }

  async #pump(sink: BodySink): Promise<void> {
    try {
      for (;;) {
        if (this.#resumed) await this.#resumed;
        if (this.#cancelled) return;
        const bytes = await this.#read();
        if (this.#cancelled) return;
        if (!bytes) break;
        sink.data(ByteSpan.of(bytes));
        if (this.#cancelled) return;
      }
    } catch (error) {
      if (this.#cancelled) return;
      this.cancel();
      sink.fail(this.#errors(error instanceof ClientError ? error : faultOf(error, true)));
      return;
    }
    this.#over();
    sink.end();
  }

  /** Reads the next piece of the body. Undefined at the end. */
  async #read(): Promise<Uint8Array | undefined> {
    if (!this.#reader) return undefined;
    const silence = new ClientError("idle_timeout", "the answer fell silent", { answerBegan: true });
    const timer = setTimeout(() => this.#controller.abort(silence), this.#idleTimeoutMs);
    try {
      return (await this.#reader.read()).value;
    } finally {
      clearTimeout(timer);
    }
  }
}

function faultOf(error: unknown, answerBegan: boolean): ClientError {
  const message = error instanceof Error ? error.message : String(error);
  return new ClientError(answerBegan ? "broken" : "connect", message, { answerBegan, cause: error });
}

function closedError(): ClientError {
  return new ClientError("closed", "the client was closed");
}
