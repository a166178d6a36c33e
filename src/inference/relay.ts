// Passes a stream of events from an engine to the client: watches usage and the end, keeps a silent stream alive.
import { GatewayError } from "../domain/errors.ts";
import { editObject, scanObject } from "../domain/json-text.ts";
import type { TokenUsage } from "../domain/usage.ts";
import { readAnswer } from "./answer.ts";
import { type DecodedRequest, type Dispatched, publicMessage } from "./dispatch.ts";
import { SseParser } from "./sse.ts";
import {
  deliveredBytes,
  estimatePromptTokens,
  estimateTokens,
  hasTotal,
  reportedUsage,
  usageObject,
  withTotal,
} from "./usage.ts";

/** What was seen of a stream so far; what settlement counts. */
export interface StreamObservation {
  /** As reported by the engine. */
  reported: TokenUsage | undefined;
  /** UTF-8 bytes of text delivered. */
  deliveredBytes: number;
}

export interface RelayOptions {
  request: DecodedRequest;
  /** The engine's response, perhaps still on its way. */
  source: Promise<Dispatched>;
  /** Id for chunks of engines that give none. */
  completionId: string;
  created: number;
  heartbeatMs: number;
  renderError(error: GatewayError): string;
  /** Called once: without an error when the stream was delivered whole. */
  onEnd(observed: StreamObservation, error: unknown): void;
  /** The client's side: aborted when it left. */
  signal: AbortSignal;
  /** Stops the engine's work. */
  abort(): void;
}

const encoder = new TextEncoder();
const keepAlive = encoder.encode(": keep-alive\n\n");
const jsonType = /^application\/json\b/i;
const usageNull = ',"usage":null}';
const heartbeat = Symbol("heartbeat");
/** After `[DONE]` the rest of the connection is read this long, so that it can be used again. */
const drainMs = 1_000;
/** A client that takes nothing for this long is cut off: what it holds back is a place at the model. */
const stalledReaderMs = 60_000;

interface Chunk {
  [member: string]: unknown;
  choices?: unknown;
}

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
  readonly #observed: StreamObservation = { reported: undefined, deliveredBytes: 0 };
  readonly #wantsUsage: boolean;
  readonly #roleSent = new Set<number>();
  #dispatched: Dispatched | undefined;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #step: Promise<string> | undefined;
  #silentMs = 0;
  #waitMs = 0;
  #usageText: string | undefined;
  #lastChunk: { id: unknown; created: unknown; model: unknown } | undefined;
  #finishSeen = false;
  #over = false;
  /** An error behind events that arrived with it: those are delivered first. */
  #deferred: unknown;
  /** Monotonic milliseconds since which the client has not asked for more; undefined while it does. */
  #unreadSinceMs: number | undefined = performance.now();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  readonly #stallCheck: ReturnType<typeof setInterval>;

  constructor(options: RelayOptions) {
    this.#options = options;
    const streamOptions = options.request.body["stream_options"] as { include_usage?: unknown } | null | undefined;
    this.#wantsUsage = streamOptions?.include_usage === true;
    // A client may leave before the first pull, when nobody would cancel.
    options.signal.addEventListener("abort", () => this.cancelled(), { once: true });
    if (options.signal.aborted) queueMicrotask(() => this.cancelled());
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
      this.#silentMs = 0;
      const text = this.#translate(done ? undefined : value);
      if (this.#over) void drain(this.#reader);
      if (text !== "") return text;
    }
  }

  async #wholeAnswer(dispatched: Dispatched): Promise<string> {
    const { request, completionId, created } = this.#options;
    const { text } = await readAnswer(request, dispatched, { id: completionId, created });
    return this.#event(wholeAsChunk(text)) + this.#done();
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

  #event(received: string): string {
    if (received === "[DONE]") return this.#done();
    const chunk = parseChunk(received);
    // JSON over several data lines: one line has to do for clients that read line by line.
    const data = received.includes("\n") ? JSON.stringify(chunk) : this.#withoutUsageNull(received, chunk);
    // The second form is vLLM's.
    if ((chunk["error"] !== undefined && chunk["error"] !== null) || chunk["object"] === "error") {
      const said = this.#dispatched && publicMessage(data, this.#dispatched.deployment.engine);
      throw new GatewayError("upstream_error", said ?? "The model server failed in the middle of the answer.");
    }
    const usage = reportedUsage(chunk["usage"]);
    if (usage) {
      this.#observed.reported = usage;
      this.#usageText = JSON.stringify(hasTotal(chunk["usage"]) ? chunk["usage"] : withTotal(chunk["usage"], usage));
    }
    const { choices } = chunk;
    // Chunks without a choice break clients that did not ask for usage; the one with usage is made at the end.
    if (!Array.isArray(choices) || choices.length === 0) return "";
    const roleAdded = this.#observe(choices);
    this.#lastChunk = { id: chunk["id"], created: chunk["created"], model: chunk["model"] };
    const edits = this.#edits(chunk);
    if (roleAdded) edits["choices"] = JSON.stringify(choices);
    const text = Object.keys(edits).length === 0 ? data : editObject(data, scanObject(data), edits);
    return `data: ${text}\n\n`;
  }

  /** The usage that we asked for makes most servers end every chunk with this: the common case needs no scan. */
  #withoutUsageNull(text: string, chunk: Chunk): string {
    if (this.#wantsUsage || chunk["usage"] !== null || !text.endsWith(usageNull)) return text;
    chunk["usage"] = undefined;
    return `${text.slice(0, -usageNull.length)}}`;
  }

  /** Counts what the choices deliver; gives each choice's first delta its role. Returns whether it changed one. */
  #observe(choices: unknown[]): boolean {
    let changed = false;
    for (const choice of choices as { index?: unknown; delta?: Record<string, unknown>; finish_reason?: unknown }[]) {
      this.#observed.deliveredBytes += deliveredBytes(choice);
      if (choice?.finish_reason) this.#finishSeen = true;
      const delta = choice?.delta;
      if (typeof delta !== "object" || delta === null) continue;
      const index = typeof choice.index === "number" ? choice.index : 0;
      if (this.#roleSent.has(index)) continue;
      this.#roleSent.add(index);
      if (delta["role"] === undefined) {
        choice.delta = { role: "assistant", ...delta };
        changed = true;
      }
    }
    return changed;
  }

  #edits(chunk: Chunk): Record<string, string | null> {
    const { request, completionId, created } = this.#options;
    const edits: Record<string, string | null> = {};
    if (chunk["model"] !== request.model) edits["model"] = JSON.stringify(request.model);
    if (chunk["id"] === undefined) edits["id"] = JSON.stringify(completionId);
    if (chunk["created"] === undefined) edits["created"] = String(created);
    if (chunk["object"] === undefined) edits["object"] = JSON.stringify(this.#objectName());
    if (this.#wantsUsage) {
      if (chunk["usage"] !== null) edits["usage"] = "null";
    } else if (chunk["usage"] !== undefined) {
      edits["usage"] = null;
    }
    return edits;
  }

  #done(): string {
    const usage = this.#wantsUsage ? this.#usageChunk() : "";
    this.#finish(undefined);
    return `${usage}data: [DONE]\n\n`;
  }

  #endWithoutDone(): string {
    if (!this.#finishSeen) {
      throw new GatewayError("upstream_error", "The model server closed the connection in the middle of the answer.");
    }
    return this.#done();
  }

  #usageChunk(): string {
    const { request, completionId, created } = this.#options;
    const usage =
      this.#usageText ?? JSON.stringify(usageObject(streamUsage(request, this.#observed), request.operation));
    const head = {
      id: this.#lastChunk?.id ?? completionId,
      object: this.#objectName(),
      created: this.#lastChunk?.created ?? created,
      model: request.model,
      choices: [],
    };
    return `data: ${JSON.stringify(head).slice(0, -1)},"usage":${usage}}\n\n`;
  }

  #objectName(): string {
    return this.#options.request.operation === "chat" ? "chat.completion.chunk" : "text_completion";
  }

  #finish(error: unknown): void {
    this.#over = true;
    clearInterval(this.#stallCheck);
    if (this.#dispatched) this.#dispatched.done(error instanceof GatewayError);
    else this.#letGo();
    // Aborting the request alone tells a body nothing that nobody is reading at the moment.
    if (error !== undefined) void this.#reader?.cancel().catch(() => {});
    this.#options.onEnd(this.#observed, error);
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

/** Usage of a stream as far as it went: reported, else estimated from what was delivered. */
export function streamUsage(request: DecodedRequest, observed: StreamObservation): TokenUsage {
  return (
    observed.reported ?? {
      promptTokens: estimatePromptTokens(request.body),
      completionTokens: estimateTokens(observed.deliveredBytes),
      estimated: true,
    }
  );
}

/** A whole answer as the only chunk of a stream. */
function wholeAsChunk(text: string): string {
  const { choices, object, ...rest } = JSON.parse(text) as { choices: Record<string, unknown>[]; object: string };
  const asDelta = ({ message, ...choice }: Record<string, unknown>) =>
    message ? { ...choice, delta: message } : choice;
  const name = object === "chat.completion" ? "chat.completion.chunk" : object;
  return JSON.stringify({ ...rest, object: name, choices: choices.map(asDelta) });
}

function parseChunk(data: string): Chunk {
  try {
    const value: unknown = JSON.parse(data);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Chunk;
  } catch {
    // Falls through: the same refusal for what is no JSON and what is no object.
  }
  throw new GatewayError("upstream_error", "The model server sent a malformed event.", {
    detail: `${data.length} characters`,
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
