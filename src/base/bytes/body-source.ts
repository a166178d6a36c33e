// The bytes of an answer as they arrive: the receiver pushes them, and pauses if the consumer falls behind.

import type { Cancellation } from "../cancellation.ts";
import { ByteSpan } from "./byte-span.ts";

/**
 * Receives the bytes that a source delivers. After `end`, `fail` or a cancellation of the source, nothing more is
 * called.
 */
export interface BodySink {
  data(bytes: ByteSpan): void;
  /**
   * An optional, cheaper form of `data`: gets the same bytes within the source's buffer, valid only during the call,
   * without an object for them.
   */
  piece?(bytes: Buffer, start: number, end: number): void;
  /** Called when the whole body has been delivered. */
  end(): void;
  /** Called when the body broke off. `error` is a GatewayError if the client may see the reason. */
  fail(error: unknown): void;
}

export interface BodySource {
  /** Starts delivery; call it once. Bytes that have already arrived are delivered before it returns. */
  flow(sink: BodySink): void;
  /**
   * Pauses delivery, except for bytes that are already on their way. The pause does not count as silence of the sender.
   */
  pause(): void;
  resume(): void;
  /** Tells the sender to stop, because the rest is not needed. May be called at any time, also instead of `flow`. */
  cancel(): void;
}

/** Returns a source for a body that is completely in memory. */
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
 * Reads a body of at most `maxBytes`. A longer body is cancelled, and the promise rejects with a BodyTooLongError. A
 * cancellation by `cancellation` also cancels the body and rejects with the same reason. `onData` is called for every
 * piece.
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
