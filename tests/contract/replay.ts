// Recorded event streams, and the relay run over them in pieces of any size.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { BodySink, BodySource } from "../../src/base/bytes/body-source.ts";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../src/base/bytes/byte-span.ts";
import type { ClientStream } from "../../src/base/bytes/client-stream.ts";
import { Cancellation } from "../../src/base/cancellation.ts";
import { systemClock } from "../../src/base/clock.ts";
import { GatewayError } from "../../src/base/errors.ts";
import type { Engine } from "../../src/domain/models/engine.ts";
import type { Operation } from "../../src/domain/models/operation.ts";
import { relay } from "../../src/inference/answer/relay.ts";
import type { Dispatched } from "../../src/inference/routing/attempt.ts";
import { Stopping } from "../../src/inference/stopping.ts";
import type { DecodedRequest } from "../../src/requests/decoded-request.ts";
import type { StreamObservation } from "../../src/requests/dialects/answer.ts";
import { renderError } from "../../src/wire/errors.ts";
import { decodedRequest } from "../support/decoded-request.ts";
import { seenNow } from "../support/relay.ts";

const folder = join(import.meta.dir, "..", "fixtures", "sse");

export interface Recording {
  name: string;
  bytes: Uint8Array;
  operation: Operation;
}

/** Every recorded stream; those whose name begins with `fault-` must not end well. */
export const recordings: readonly Recording[] = readdirSync(folder)
  .filter((file) => file.endsWith(".sse"))
  .sort()
  .map((file) => ({
    name: file.replace(/\.sse$/, ""),
    bytes: new Uint8Array(readFileSync(join(folder, file))),
    operation: file.startsWith("legacy-") ? "completion" : "chat",
  }));

export interface Replay {
  /** Everything the client gets. */
  text: string;
  observed: StreamObservation;
  error: unknown;
}

/** An engine that was reached already. */
const engine: Engine = {
  name: "recorded",
  send: () => Promise.reject(new Error("not used")),
  models: () => Promise.resolve([]),
  redact: (text) => text,
};

/** Sends `pieces` through the relay, each as one network read. */
export async function replay(
  pieces: readonly Uint8Array[],
  operation: Operation,
  includeUsage: boolean,
): Promise<Replay> {
  const client = new CollectingClient();
  let ended: { observed: StreamObservation; error: unknown } | undefined;
  relay(
    {
      request: streamRequest(operation, includeUsage),
      stop: undefined,
      source: {
        response: { status: 200, headers: new Headers(), body: bodyInPieces(pieces) },
        deployment: { engine, model: "upstream-model", weight: 1 },
        model: { id: streamRequest(operation, includeUsage).model } as Dispatched["model"],
        firstByte() {},
        answers() {},
        done() {},
        another: (error) => Promise.reject(error),
      },
      completion: { id: "chatcmpl-req_given", created: 1_800_000_000, ownId: false },
      clock: systemClock,
      heartbeatMs: 60_000,
      memoryAccount: bufferedBytes.visitors,
      renderError: (error) => renderError(error),
      onPiece: () => {},
      recorded: false,
      record() {},
      recordsEnd: false,
      recordEnd() {},
      truthful: (events) => events,
      async onEnd(observed, error) {
        if (ended) throw new Error("onEnd was called twice");
        ended = { observed: seenNow(observed), error };
      },
      clientGone: new Cancellation(),
      stopping: new Stopping(),
      abort() {},
      answers() {},
      begins() {},
      unbegun() {},
      another: (_dispatched, error) => Promise.reject(error),
    },
    client,
  );
  await client.ended;
  if (!ended) throw new GatewayError("internal_error", "onEnd was not called");
  return { text: client.text, ...ended };
}

/** Everything is on its way at once, as when an engine is faster than the network. */
function bodyInPieces(pieces: readonly Uint8Array[]): BodySource {
  let cancelled = false;
  return {
    flow(sink: BodySink) {
      for (const piece of pieces) if (!cancelled) sink.data(ByteSpan.of(piece));
      if (!cancelled) sink.end();
    },
    pause() {},
    resume() {},
    cancel() {
      cancelled = true;
    },
  };
}

/** A client that takes everything. */
class CollectingClient implements ClientStream {
  onDrain: (() => void) | undefined;
  readonly ended: Promise<void>;
  #bytes = "";
  #end: () => void;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#end = resolve;
  }

  get text(): string {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(this.#bytes, "latin1"));
  }

  writeAround(before: string, bytes: Buffer, start: number, end: number, after: string): boolean {
    return this.write(before + bytes.toString("latin1", start, end) + after);
  }

  write(bytes: string): boolean {
    this.#bytes += bytes;
    return true;
  }

  end(last = ""): void {
    this.#bytes += last;
    this.#end();
  }

  abort(): void {
    throw new Error("The relay broke the connection off");
  }
}

function streamRequest(operation: Operation, includeUsage: boolean): DecodedRequest {
  const body = {
    model: "upstream-model",
    stream: true,
    ...(operation === "chat" ? { messages: [{ role: "user", content: "Hello there" }] } : { prompt: "Hello there" }),
    ...(includeUsage ? { stream_options: { include_usage: true } } : {}),
  };
  return decodedRequest(body, operation);
}

export function splitAt(bytes: Uint8Array, position: number): Uint8Array[] {
  return [bytes.subarray(0, position), bytes.subarray(position)].filter((piece) => piece.length > 0);
}

export function byteByByte(bytes: Uint8Array): Uint8Array[] {
  return Array.from(bytes, (byte) => new Uint8Array([byte]));
}

/** One event of a stream as a client reads it: its `data` lines joined, or a comment. */
export interface ClientEvent {
  data?: string;
  comment?: string;
}

/**
 * A strict reader of what Headrace sends: LF only, a comment in a line before an event, every event ended by a blank line, no
 * field but `data`.
 */
export function clientEvents(text: string): ClientEvent[] {
  const events: ClientEvent[] = [];
  let data: string[] = [];
  for (const line of text.split("\n").slice(0, -1)) {
    if (line.startsWith("data: ")) data.push(line.slice(6));
    else if (line.startsWith(":") && data.length === 0) events.push({ comment: line });
    else if (line === "" && data.length > 0) {
      events.push({ data: data.join("\n") });
      data = [];
    } else throw new Error(`A line that is no data line: ${JSON.stringify(line.slice(0, 80))}`);
  }
  if (data.length > 0 || (text !== "" && !text.endsWith("\n"))) {
    throw new Error(`The stream ends inside an event: ${JSON.stringify(text.slice(-80))}`);
  }
  return events;
}
