// The bytes of an answer as they arrive: the receiver pushes them, and pauses if the consumer falls behind.

import type { Cancellation } from "../cancellation.ts";
import { ByteSpan } from "./byte-span.ts";

/** Receives what a source delivers. Nothing is called after `end` or `fail`, or once the source was cancelled. */
export interface BodySink {
  data(bytes: ByteSpan): void;
  /**
   * If present, a source may call it instead of `data`: it passes the same bytes within their buffer, valid until it
   * returns, without an object for them.
   */
  piece?(bytes: Buffer, start: number, end: number): void;
  /** Everything has been delivered. */
  end(): void;
  /** The body broke off. A GatewayError if the client may see the reason. */
  fail(error: unknown): void;
}

export interface BodySource {
  /** Begins to deliver; call it once. Bytes that are here already are delivered before it returns. */
  flow(sink: BodySink): void;
  /** After the call only bytes already on their way arrive. Silence no longer counts as the sender's. */
  pause(): void;
  resume(): void;
  /** Tells the sender to stop, since nobody wants the rest. Harmless at any time, also instead of `flow`. */
  cancel(): void;
}

/** A body that is here completely. */
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
 * Reads a body of at most `maxBytes`. A longer one is cancelled, and the promise rejects with a BodyTooLongError.
 * `cancellation` cancels it too, with its reason. `onData` is called for every piece.
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
