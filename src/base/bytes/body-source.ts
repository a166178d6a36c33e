// The bytes of an answer on their way: pushed by whoever receives them, paused when the one who takes them falls behind.

import type { Cancellation } from "../cancellation.ts";
import { ByteSpan } from "./byte-span.ts";

/** Takes what a source gives. Nothing is called after `end` or `fail`, nor after the source was cancelled. */
export interface BodySink {
  data(bytes: ByteSpan): void;
  /**
   * A source may call it, where it is there, instead of `data`: it gives the same bytes where they lie until it
   * returns, without an object for them.
   */
  piece?(bytes: Buffer, start: number, end: number): void;
  /** All of it was given. */
  end(): void;
  /** It broke off; a GatewayError where the reason is fit for the client. */
  fail(error: unknown): void;
}

export interface BodySource {
  /** Begins to give; once. What is here already is given before it returns. */
  flow(sink: BodySink): void;
  /** After it, at most what was on its way comes. Counts no silence as the sender's. */
  pause(): void;
  resume(): void;
  /** Tells the sender to stop, as nobody wants the rest. Harmless at any time, also instead of `flow`. */
  cancel(): void;
}

/** A body that is here as a whole. */
export function bodyOf(bytes: Uint8Array): BodySource {
  let cancelled = false;
  return {
    flow(sink) {
      if (bytes.byteLength > 0) sink.data(ByteSpan.of(bytes));
      if (!cancelled) sink.end();
    },
    pause() {},
    resume() {},
    cancel() {
      cancelled = true;
    },
  };
}

export class BodyTooLongError extends Error {
  override readonly name = "BodyTooLongError";
}

/**
 * All of a body, if it is no longer than `maxBytes`; else it is cancelled, and rejects with a BodyTooLongError.
 * Cancelled as well by `cancellation`, with its reason. `onData` is called for every piece.
 */
export function readAll(
  source: BodySource,
  maxBytes: number,
  cancellation: Cancellation,
  onData: () => void,
): Promise<ByteSpan> {
  return new Promise((resolve, reject) => {
    const pieces: ByteSpan[] = [];
    let length = 0;
    const stop = (error: unknown) => {
      cancellation.off(onCancel);
      source.cancel();
      reject(error);
    };
    const onCancel = () => stop(cancellation.reason);
    cancellation.onCancel(onCancel);
    if (cancellation.cancelled) return;
    source.flow({
      data(bytes) {
        onData();
        length += bytes.length;
        if (length > maxBytes) stop(new BodyTooLongError(`more than ${maxBytes} bytes`));
        else pieces.push(bytes);
      },
      end() {
        cancellation.off(onCancel);
        resolve(ByteSpan.joined(pieces, length));
      },
      fail(error) {
        cancellation.off(onCancel);
        reject(error);
      },
    });
  });
}
