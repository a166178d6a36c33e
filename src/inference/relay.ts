// Passes a stream of events from an engine to the client: watches usage and the end, keeps a silent stream alive.
import { GatewayError } from "../domain/errors.ts";
import { SseParser } from "../domain/sse.ts";
import { type CompletionNames, readAnswer } from "./answer.ts";
import type { DecodedRequest, Dispatched } from "./dispatch.ts";
import type { Stopping } from "./stopping.ts";
import { ChunkTranslator, type StreamObservation, wholeAsChunk } from "./stream-chunks.ts";

export interface RelayOptions {
  request: DecodedRequest;
  /** The engine's response, perhaps still on its way. */
  source: Promise<Dispatched>;
  completion: CompletionNames;
  heartbeatMs: number;
  renderError(error: GatewayError): string;
  /** Called with what was seen so far, before the client gets a piece of it that is not the last. */
  onPiece(observed: StreamObservation): void;
  /** Called with each event for the client, where somebody keeps the answer. */
  record: ((event: string) => void) | undefined;
  /** Called once, before the client gets the end: without an error when the stream was delivered whole. */
  onEnd(observed: StreamObservation, error: unknown): void;
  /** The client's side: aborted when it left. */
  signal: AbortSignal;
  stopping: Stopping;
  /** Stops the engine's work. */
  abort(): void;
}

const encoder = new TextEncoder();
const keepAlive = encoder.encode(": keep-alive\n\n");
const jsonType = /^application\/json\b/i;
const doneMark = "[DONE]";
const heartbeat = Symbol("heartbeat");
/** After `[DONE]` the rest of the connection is read this long, so that it can be used again. */
const drainMs = 1_000;
/** A client that takes nothing for this long is cut off: what it holds back is a place at the model. */
const stalledReaderMs = 60_000;

/**
 * The client's side of the stream. It pulls: when the client does not read, the engine is not read. Errors become one
 * error event and the end without `[DONE]`; a heartbeat comment goes out whenever the engine is silent.
 */
export function relayStream(options: RelayOptions): ReadableStream<Uint8Array> {
  const relay = new Relay(options);
  return new ReadableStream<Uint8Array>(
    { pull: (controller) => relay.pull(controller), cancel: () => relay.cancelled() },
    { highWaterMark: 0 },
  );
}

class Relay {
  readonly #options: RelayOptions;
  readonly #parser = new SseParser();
  readonly #chunks: ChunkTranslator;
  #dispatched: Dispatched | undefined;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #step: Promise<string> | undefined;
  #silentMs = 0;
  #waitMs = 0;
  #over = false;
  /** An error behind events that arrived with it: those are delivered first. */
  #deferred: unknown;
  /** Monotonic milliseconds since which the client has not asked for more; undefined while it does. */
  #unreadSinceMs: number | undefined = performance.now();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  readonly #stallCheck: ReturnType<typeof setInterval>;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#chunks = new ChunkTranslator(options.request, options.completion);
    // A client may leave before the first pull, when nobody would cancel.
    options.signal.addEventListener("abort", () => this.cancelled(), { once: true });
    if (options.signal.aborted) queueMicrotask(() => this.cancelled());
    options.stopping.add(this.#onStopping);
    this.#stallCheck = setInterval(() => this.#checkStalled(), stalledReaderMs / 4);
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#controller = controller;
    this.#unreadSinceMs = undefined;
    try {
      await this.#pull(controller);
    } finally {
      this.#unreadSinceMs = performance.now();
    }
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    if (!this.#step) {
      this.#step = this.#next();
      // Between two pulls, and after the client left, nobody waits for it.
      this.#step.catch(() => {});
    }
    try {
      const outcome = await this.#orHeartbeat(this.#step);
      if (outcome === heartbeat) {
        this.#checkIdle();
        controller.enqueue(keepAlive);
        return;
      }
      this.#step = undefined;
      this.#silentMs = 0;
      if (outcome === "") return controller.close();
      controller.enqueue(encoder.encode(outcome));
      if (this.#over) controller.close();
    } catch (error) {
      this.#fail(controller, error);
    }
  }

  cancelled(): void {
    if (this.#over) return;
    this.#finish(new DOMException("The client left", "AbortError"));
    this.#options.abort();
  }

  readonly #onStopping = (): void => {
    if (this.#controller) this.#fail(this.#controller, stoppingError());
    else this.cancelled();
  };

  #checkStalled(): void {
    if (this.#unreadSinceMs === undefined || performance.now() - this.#unreadSinceMs < stalledReaderMs) return;
    this.cancelled();
    this.#controller?.error(new DOMException("The client stopped reading", "TimeoutError"));
  }

  async #orHeartbeat(step: Promise<string>): Promise<string | typeof heartbeat> {
    const idleMs = this.#dispatched?.deployment.engine.idleTimeoutMs ?? Number.POSITIVE_INFINITY;
    this.#waitMs = Math.min(this.#options.heartbeatMs, Math.max(1, idleMs - this.#silentMs));
    let timer: ReturnType<typeof setTimeout> | undefined;
    const silence = new Promise<typeof heartbeat>((resolve) => {
      timer = setTimeout(resolve, this.#waitMs, heartbeat);
    });
    try {
      return await Promise.race([step, silence]);
    } finally {
      clearTimeout(timer);
    }
  }

  #checkIdle(): void {
    this.#silentMs += this.#waitMs;
    const limit = this.#dispatched?.deployment.engine.idleTimeoutMs;
    if (limit !== undefined && this.#silentMs >= limit) {
      throw new GatewayError("upstream_timeout", "The model server stopped sending in the middle of the answer.");
    }
  }

  #fail(controller: ReadableStreamDefaultController<Uint8Array>, error: unknown): void {
    if (this.#over) return;
    if (this.#options.signal.aborted) {
      this.cancelled();
      return;
    }
    const shown =
      error instanceof GatewayError
        ? error
        : new GatewayError("upstream_error", "The model server broke off in the middle of the answer.", {
            cause: error,
          });
    this.#finish(shown);
    this.#options.abort();
    try {
      controller.enqueue(encoder.encode(`data: ${this.#options.renderError(shown)}\n\n`));
      controller.close();
    } catch {
      // The client is gone as well: nobody is left to tell.
    }
  }

  /** Text of at least one event for the client; sets #over with the last. */
  async #next(): Promise<string> {
    if (!this.#reader) {
      this.#dispatched = await this.#options.source;
      const { body, headers } = this.#dispatched.response;
      if (this.#over) return "";
      // Some servers ignore `stream: true`, and some report errors with status 200.
      if (jsonType.test(headers.get("content-type") ?? "")) return await this.#wholeAnswer(this.#dispatched);
      if (!body) throw new GatewayError("upstream_error", "The model server sent an empty answer.");
      this.#reader = body.getReader();
    }
    for (;;) {
      if (this.#deferred !== undefined) throw this.#deferred;
      const { value, done } = await this.#reader.read();
      if (this.#over) return "";
      this.#dispatched?.firstByte();
      this.#silentMs = 0;
      const text = this.#translate(done ? undefined : value);
      if (this.#over) void drain(this.#reader);
      else if (text !== "") this.#options.onPiece(this.#chunks.observed);
      if (text !== "") return text;
    }
  }

  async #wholeAnswer(dispatched: Dispatched): Promise<string> {
    const { request, completion } = this.#options;
    const { text } = await readAnswer(request, dispatched, completion);
    if (this.#over) return "";
    return this.#event(wholeAsChunk(text)) + this.#event(doneMark);
  }

  /** What a piece of the engine's stream, or its end, tells the client. */
  #translate(bytes: Uint8Array | undefined): string {
    let text = "";
    try {
      for (const event of bytes ? this.#parser.push(bytes) : this.#parser.end()) {
        text += this.#event(event);
        if (this.#over) return text;
      }
      return bytes ? text : text + this.#endWithoutDone();
    } catch (error) {
      if (text === "") throw error;
      this.#deferred = error;
      return text;
    }
  }

  #event(data: string): string {
    if (data !== doneMark) {
      const event = this.#chunks.translate(data, this.#dispatched?.deployment.engine);
      if (event !== "") this.#options.record?.(event);
      return event;
    }
    const text = this.#chunks.ending();
    this.#options.record?.(text);
    this.#finish(undefined);
    return text;
  }

  /** Some servers forget the mark; the reason for which generation ended proves as much. */
  #endWithoutDone(): string {
    if (this.#chunks.finishSeen) return this.#event(doneMark);
    throw new GatewayError("upstream_error", "The model server closed the connection in the middle of the answer.");
  }

  #finish(error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    clearInterval(this.#stallCheck);
    this.#options.stopping.remove(this.#onStopping);
    if (this.#dispatched) this.#dispatched.done(error instanceof GatewayError);
    else this.#letGo();
    // Aborting the request alone tells a body nothing that nobody is reading at the moment.
    if (error !== undefined) void this.#reader?.cancel().catch(() => {});
    this.#options.onEnd(this.#chunks.observed, error);
  }

  /** An answer that came, or will come, for a client that never read it. */
  #letGo(): void {
    this.#options.source.then(
      ({ done, response }) => {
        done(false);
        void response.body?.cancel().catch(() => {});
      },
      () => {},
    );
  }
}

export function stoppingError(): GatewayError {
  return new GatewayError("service_unavailable", "The server is being stopped; send the request again.", {
    retryAfterSeconds: 5,
  });
}

async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  const timer = setTimeout(() => void reader.cancel().catch(() => {}), drainMs);
  try {
    while (!(await reader.read()).done);
  } catch {
    // The answer is complete: how its connection ends is of no interest.
  } finally {
    clearTimeout(timer);
  }
}
