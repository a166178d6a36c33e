// The body of a node's answer at the gateway. Bytes are passed on or buffered; the node sends only as many as were
// granted.

import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { exactMs } from "../../base/clock.ts";

export interface AnswerOwner {
  /** Allows the node to send this many more bytes. */
  grant(bytes: number): void;
  /** Called when the reader cancels the answer. */
  cancelled(): void;
}

type End = { error: unknown } | "complete";

const minBufferBytes = 4 * 1024;
const nothing = Buffer.alloc(0);

export class IncomingAnswer implements BodySource {
  readonly #owner: AnswerOwner;
  readonly #windowBytes: number;
  readonly #memoryAccount: MemoryAccount;
  /** Number of bytes that the node may still send. */
  #grantedBytes: number;
  /** Number of bytes that the reader has consumed since the last grant. */
  #takenBytes = 0;
  #sink: BodySink | undefined;
  #paused = false;
  /** Bytes that arrived while the reader was paused. They are copied, because a piece may belong to a larger buffer. */
  #buffer: Buffer = nothing;
  #bufferedBytes = 0;
  #end: End | undefined;
  /** True when the reader gets nothing more. */
  #over = false;
  /** Monotonic milliseconds since which the reader waits for the node; infinite while it does not read. */
  #waitingSinceMs = Number.POSITIVE_INFINITY;

  /** `memoryAccount` counts buffered bytes. */
  constructor(owner: AnswerOwner, windowBytes: number, memoryAccount: MemoryAccount) {
    this.#owner = owner;
    this.#memoryAccount = memoryAccount;
    this.#windowBytes = windowBytes;
    this.#grantedBytes = windowBytes;
  }

  /** Number of bytes that the node may still send. */
  get grantedBytes(): number {
    return this.#grantedBytes;
  }

  /** Monotonic milliseconds since which the reader waits for the node; infinite while it does not read. */
  get waitingSinceMs(): number {
    return this.#waitingSinceMs;
  }

  flow(sink: BodySink): void {
    if (this.#sink) throw new Error("The body of an answer flows once.");
    this.#sink = sink;
    this.#waitingSinceMs = exactMs();
    this.#give();
  }

  pause(): void {
    this.#paused = true;
    this.#waitingSinceMs = Number.POSITIVE_INFINITY;
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#waitingSinceMs = exactMs();
    this.#give();
  }

  cancel(): void {
    if (this.#over) return;
    this.#stop();
    if (!this.#end) this.#owner.cancelled();
  }

  /** Handles a piece of the answer. Returns false if it exceeds the grant. */
  push(bytes: Buffer): boolean {
    if (bytes.length > this.#grantedBytes) return false;
    this.#grantedBytes -= bytes.length;
    if (this.#over || bytes.length === 0) return true;
    if (!this.#sink || this.#paused || this.#bufferedBytes > 0) {
      this.#hold(bytes);
      return true;
    }
    this.#waitingSinceMs = exactMs();
    this.#sink.data(ByteSpan.of(bytes));
    this.#took(bytes.length);
    return true;
  }

  /** Called when the whole answer has arrived. */
  complete(): void {
    this.#end ??= "complete";
    this.#give();
  }

  /** Fails the answer. The reader first gets the bytes that arrived before. */
  fail(error: unknown): void {
    this.#end ??= { error };
    this.#give();
  }

  #hold(bytes: Buffer): void {
    const length = this.#bufferedBytes + bytes.length;
    if (length > this.#buffer.length) {
      const doubled = Math.max(length, 2 * this.#buffer.length, minBufferBytes);
      const room = Math.max(length, Math.min(doubled, this.#windowBytes));
      const refusal = this.#memoryAccount.take("tunnels", room - this.#buffer.length);
      if (refusal) {
        this.#breakOff(refusal);
        return;
      }
      const buffer = Buffer.allocUnsafeSlow(room);
      this.#buffer.copy(buffer, 0, 0, this.#bufferedBytes);
      this.#buffer = buffer;
    }
    bytes.copy(this.#buffer, this.#bufferedBytes);
    this.#bufferedBytes = length;
  }

  #give(): void {
    const sink = this.#sink;
    if (!sink || this.#paused || this.#over) return;
    if (this.#bufferedBytes > 0) {
      const buffer = new ByteSpan(this.#buffer, 0, this.#bufferedBytes);
      this.#letGo();
      sink.data(buffer);
      this.#took(buffer.length);
      // The reader may have paused or cancelled in this call.
      if (this.#paused || this.#over) return;
    }
    const end = this.#end;
    if (!end) return;
    this.#stop();
    if (end === "complete") sink.end();
    else sink.fail(end.error);
  }

  #took(bytes: number): void {
    this.#takenBytes += bytes;
    if (this.#over || this.#end || this.#takenBytes < this.#windowBytes / 2) return;
    this.#grantedBytes += this.#takenBytes;
    this.#owner.grant(this.#takenBytes);
    this.#takenBytes = 0;
  }

  /** Fails the answer because there is no memory to buffer it. The node stops; the reader gets the error. */
  #breakOff(error: unknown): void {
    this.#letGo();
    this.#owner.cancelled();
    this.fail(error);
  }

  #letGo(): void {
    if (this.#buffer.length > 0) this.#memoryAccount.release("tunnels", this.#buffer.length);
    this.#buffer = nothing;
    this.#bufferedBytes = 0;
  }

  #stop(): void {
    this.#over = true;
    this.#letGo();
    this.#waitingSinceMs = Number.POSITIVE_INFINITY;
  }
}
