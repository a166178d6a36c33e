// A client connection after a protocol upgrade. The code that uses it must close it.

import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { BulkInput, type BulkTaker, sliceBytes } from "../../base/bytes/bulk-input.ts";
import { exactMs } from "../../base/clock.ts";
import { type IndexedItem, noIndex } from "../../base/indexed-set.ts";
import type { ByteChannelListener, PausableChannel } from "../byte-channel.ts";
import type { ConnectionOutput } from "./connection-output.ts";
import type { Http1Limits } from "./server-limits.ts";

/** The parts of Bun's socket that are used here. */
export interface UpgradedSocket {
  pause(): void;
  resume(): void;
  shutdown(): void;
  terminate(): void;
}

const never = Number.POSITIVE_INFINITY;

export class UpgradedConnection implements PausableChannel, IndexedItem, BulkTaker {
  setIndex = noIndex;
  readonly peer: string;
  readonly #socket: UpgradedSocket;
  readonly #output: ConnectionOutput;
  readonly #limits: Http1Limits;
  readonly #onFault: (error: unknown) => void;
  readonly #bulk = new BulkInput(this);
  #listener: ByteChannelListener | undefined;
  /** Bytes that arrived before `listen` was called. */
  #early: Buffer | undefined;
  /** True if the connection will be closed once everything is sent. */
  #ending = false;
  #paused = false;
  #lingering = false;
  #discardedBytes = 0;
  #closed = false;
  #deadlineMs = never;

  /**
   * `early` has the bytes that arrived behind the request. `onFault` is called with errors that the listener throws.
   */
  constructor(
    socket: UpgradedSocket,
    peer: string,
    output: ConnectionOutput,
    limits: Http1Limits,
    early: Buffer | undefined,
    onFault: (error: unknown) => void,
  ) {
    this.#socket = socket;
    this.peer = peer;
    this.#output = output;
    this.#limits = limits;
    this.#early = early;
    this.#onFault = onFault;
    socket.pause();
  }

  get unsentBytes(): number {
    return this.#output.unsentBytes;
  }

  get closed(): boolean {
    return this.#closed || this.#ending;
  }

  listen(listener: ByteChannelListener): void {
    if (this.#listener) throw new Error("Somebody listens to this connection already.");
    this.#listener = listener;
    if (this.#closed) {
      queueMicrotask(() => listener.closed());
      return;
    }
    const early = this.#early;
    this.#early = undefined;
    if (early && early.length > 0 && !this.#ending) listener.data(early);
    if (!this.#closed && !this.#paused) this.#socket.resume();
  }

  pause(): void {
    if (this.#paused || this.closed) return;
    this.#paused = true;
    this.#bulk.stop(bufferedBytes.bounded);
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#bulk.goOn();
    if (!this.#bulk.isHushed && !this.#closed) this.#socket.resume();
  }

  write(bytes: Uint8Array): void {
    if (this.closed || bytes.byteLength === 0) return;
    const wasBehind = this.#output.behind;
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (this.#output.writeCopied(buffer) || wasBehind) return;
    this.#deadlineMs = exactMs() + this.#limits.unsentMs;
  }

  end(): void {
    if (this.closed) return;
    this.#ending = true;
    this.#early = undefined;
    this.#bulk.clear();
    if (!this.#output.behind) this.#linger();
  }

  terminate(): void {
    this.#bulk.clear();
    if (!this.#closed) this.#socket.terminate();
    this.didClose();
  }

  /** Called by the server with received bytes. */
  data(bytes: Buffer): void {
    if (this.#ending) this.#discard(bytes);
    else if (this.#listener && (this.#bulk.waits || bytes.length > sliceBytes)) this.#bulk.add(bytes);
    else if (this.#listener) this.#listener.data(bytes);
    else this.#early = this.#early ? Buffer.concat([this.#early, bytes]) : bytes;
  }

  /**
   * No caller catches an error of the listener here, because slices are read in a later tick. So it is caught, and
   * closes only this connection.
   */
  takeSlice(bytes: Buffer): void {
    try {
      this.#listener?.data(bytes);
    } catch (error) {
      this.terminate();
      this.#onFault(error);
    }
  }

  hush(): void {
    this.#socket.pause();
  }

  unhush(): void {
    if (!this.#closed && !this.#paused) this.#socket.resume();
  }

  /** Called by the server when the kernel accepts bytes again. */
  drain(): void {
    if (!this.#output.behind) return;
    if (this.#output.flush() > 0) this.#deadlineMs = exactMs() + this.#limits.unsentMs;
    if (this.#output.behind) return;
    this.#deadlineMs = never;
    if (this.#ending) this.#linger();
    else this.#listener?.drained();
  }

  /** Called by the server when either side has closed the socket. */
  didClose(): void {
    if (this.#closed) return;
    // Bytes that arrived before the end are still delivered.
    if (!this.#ending) this.#bulk.finish();
    // While receiving these bytes, the listener may have closed the connection.
    if (this.#closed) return;
    this.#closed = true;
    this.#deadlineMs = never;
    this.#early = undefined;
    // If input was paused, the remaining bytes are dropped.
    this.#bulk.clear();
    this.#output.clear();
    this.#listener?.closed();
  }

  destroy(): void {
    this.terminate();
  }

  /** Does nothing, because only the code that uses the connection knows whether it is idle. */
  closeIfIdle(): void {}

  close(): void {
    this.terminate();
  }

  /** Handles a deadline that has passed at `nowMs`. */
  checkDeadline(nowMs: number): void {
    if (nowMs >= this.#deadlineMs) this.terminate();
  }

  /** Closes the sending side first, because a reset could make the client lose the last bytes. */
  #linger(): void {
    this.#lingering = true;
    this.#deadlineMs = exactMs() + this.#limits.lingerMs;
    this.#socket.shutdown();
    this.#socket.resume();
  }

  #discard(bytes: Buffer): void {
    this.#discardedBytes += bytes.length;
    if (this.#lingering && this.#discardedBytes > this.#limits.lingerBytes) this.terminate();
  }
}
