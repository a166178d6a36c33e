// A relay between an engine and a client that a test drives by hand.

import type { BodySink, BodySource } from "../../src/base/bytes/body-source.ts";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../src/base/bytes/byte-span.ts";
import type { ClientStream } from "../../src/base/bytes/client-stream.ts";
import { Cancellation } from "../../src/base/cancellation.ts";
import { exactMs } from "../../src/base/clock.ts";
import type { Engine } from "../../src/domain/models/engine.ts";
import { relay } from "../../src/inference/answer/relay.ts";
import type { RelayOptions } from "../../src/inference/answer/relay-options.ts";
import type { Dispatched } from "../../src/inference/routing/attempt.ts";
import { Stopping } from "../../src/inference/stopping.ts";
import type { DecodedRequest } from "../../src/requests/decoded-request.ts";
import type { StreamObservation } from "../../src/requests/dialects/answer.ts";
import { decodedRequest } from "./decoded-request.ts";

export function requestFor(body: Record<string, unknown>): DecodedRequest {
  return decodedRequest({ messages: [], stream: true, ...body });
}

export const event = (content: string, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: { role: "assistant", content }, finish_reason: finish }] })}\n\n`;
export const done = "data: [DONE]\n\n";
export const comment = ": keep-alive\n";

/** An engine's response whose bytes the test sends one by one. */
export class Source implements BodySource {
  paused = false;
  cancelled = false;
  firstBytes = 0;
  /** What `done` was called with, in order. */
  readonly ends: boolean[] = [];
  readonly dispatched: Dispatched;
  #sink: BodySink | undefined;

  constructor(contentType = "text/event-stream") {
    const engine: Engine = {
      name: "e",
      redact: (said) => said,
      send: () => Promise.reject(new Error("not used")),
      models: async () => [],
    };
    this.dispatched = {
      response: { status: 200, headers: new Headers({ "content-type": contentType }), body: this },
      deployment: { engine, model: "m", weight: 1 },
      model: { id: "m" } as Dispatched["model"],
      firstByte: () => void this.firstBytes++,
      answers() {},
      another: (error) => {
        this.ends.push(true);
        return Promise.reject(error);
      },
      done: (failed) => void this.ends.push(failed),
    };
  }

  get flowing(): boolean {
    return this.#sink !== undefined;
  }

  flow(sink: BodySink): void {
    if (this.#sink) throw new Error("It flows already");
    if (!this.cancelled) this.#sink = sink;
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  cancel(): void {
    this.cancelled = true;
    this.#sink = undefined;
  }

  send(data: string | Uint8Array): void {
    this.#sink?.data(ByteSpan.of(data));
  }

  /** Gives a piece as the client of model servers does: somewhere in what was received. */
  sendPiece(data: string): void {
    const bytes = Buffer.from(`<${data}>`);
    this.#sink?.piece?.(bytes, 1, bytes.length - 1);
    bytes.fill("!");
  }

  end(): void {
    this.#sink?.end();
  }

  fail(error: Error): void {
    this.#sink?.fail(error);
  }
}

export class Client implements ClientStream {
  /** Each write, as the client reads it. */
  readonly writes: string[] = [];
  /** How many of them were bytes where they lay. */
  inPlace = 0;
  behind = false;
  ended = false;
  aborted = false;
  onDrain: (() => void) | undefined;

  get text(): string {
    return this.writes.join("");
  }

  writeAround(before: string, bytes: Buffer, start: number, end: number, after: string): boolean {
    this.inPlace++;
    return this.write(before + bytes.toString("latin1", start, end) + after);
  }

  write(bytes: string): boolean {
    if (this.ended || this.aborted) throw new Error("Written behind the end");
    this.writes.push(Buffer.from(bytes, "latin1").toString("utf8"));
    return !this.behind;
  }

  drain(): void {
    this.behind = false;
    this.onDrain?.();
  }

  end(last?: string): void {
    if (last !== undefined) this.write(last);
    this.ended = true;
  }

  abort(): void {
    this.aborted = true;
  }
}

/** For whoever is told of a piece once: of the first. */
export const withoutReportedUsage: Partial<RelayOptions> = {
  recorded: false,
  onPiece(_observed, due) {
    due.dueMs = Number.POSITIVE_INFINITY;
    due.duePieces = Number.POSITIVE_INFINITY;
  },
};

/** `isThere`: whether its client waits for what comes; else it is asked for. */
export function start(source: RelayOptions["source"], options: Partial<RelayOptions> = {}, isThere = true) {
  const client = new Client();
  const clientGone = options.clientGone ?? new Cancellation();
  const stopping = options.stopping ?? new Stopping();
  const started = {
    client,
    left: clientGone,
    stopping,
    ends: [] as { observed: StreamObservation; error: unknown }[],
    pieces: [] as StreamObservation[],
    recorded: [] as string[],
    aborts: 0,
  };
  if (source instanceof Promise) source.catch(() => {});
  relay(
    {
      request: requestFor({}),
      stop: undefined,
      source,
      completion: { id: "chatcmpl-x", created: 1, ownId: false },
      // The timers of a test may go on within one event.
      clock: { monotonicMs: exactMs },
      heartbeatMs: 10_000,
      memoryAccount: bufferedBytes.visitors,
      clientGone: clientGone,
      stopping,
      renderError: (error) => JSON.stringify({ error: { message: error.message, type: "t", code: error.code } }),
      onPiece: (observed) => void started.pieces.push(seenNow(observed)),
      recorded: true,
      record: (events) => void started.recorded.push(events),
      recordsEnd: false,
      recordEnd() {},
      truthful: (events) => events,
      onEnd: async (observed, error) => void started.ends.push({ observed: seenNow(observed), error }),
      abort: () => {
        started.aborts++;
      },
      answers: (dispatched) => dispatched.answers(),
      begins() {},
      unbegun() {},
      another: (dispatched, error, isCut) => dispatched.another(error, isCut),
      ...options,
    },
    isThere ? client : undefined,
  );
  return started;
}

/** Long enough for what waits for one promise. */
export const soon = () => Promise.resolve().then(() => Promise.resolve());
/** Long enough for an answer that is read as a whole. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

/** What was seen up to this moment: it grows with the stream. */
export function seenNow({ reported, deliveredBytes, deliveredPieces }: StreamObservation): StreamObservation {
  return { reported, deliveredBytes, deliveredPieces };
}
