// A request or response body whose bytes arrive over time. The receiver pushes the bytes, and pauses if the consumer
// falls behind.

import type { Cancellation } from "../cancellation.ts";
import { ByteSpan } from "./byte-span.ts";

/**
 * Receives the bytes that a source delivers. After `end`, `fail` or a cancellation of the source, the source calls no
 * method any more.
 */
export interface BodySink {
  data(bytes: ByteSpan): void;
  /**
   * An optional, cheaper form of `data` that needs no ByteSpan object. The range of `bytes` is valid only during the
   * call.
   */
  piece?(bytes: Buffer, start: number, end: number): void;
  /** Called when the whole body has been delivered. */
  end(): void;
  /** Called when the body ended before it was complete. `error` is a GatewayError if the client may see the reason. */
  fail(error: unknown): void;
}

export interface BodySource {
  /** Starts delivery. May be called only once. Bytes that have already arrived are delivered before it returns. */
  flow(sink: BodySink): void;
  /**
   * Pauses delivery. Bytes that are already on their way are still delivered. The time until the body resumes does not
   * count towards the sender's idle timeout.
   */
  pause(): void;
  resume(): void;
  /**
   * Tells the sender to stop, because the remaining bytes are not needed. May be called at any time, also instead of
   * `flow`.
   */
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
 * Reads a whole body. If the body is longer than `maxBytes`, cancels the source and rejects with a BodyTooLongError. If
 * `cancellation` is cancelled, cancels the source and rejects with the reason. Calls `onData` for every piece.
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
