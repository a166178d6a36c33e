// The body of a node's answer at the gateway: given on at once, or held, never more of it than was granted.

import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { exactMs } from "../../base/clock.ts";

export interface AnswerOwner {
  /** The node may send so many bytes more. */
  grant(bytes: number): void;
  /** Called when nobody wants the rest. */
  cancelled(): void;
}

type End = { error: unknown } | "complete";

const minHeldBytes = 4 * 1024;
const nothing = Buffer.alloc(0);

export class IncomingAnswer implements BodySource {
  readonly #owner: AnswerOwner;
  readonly #windowBytes: number;
  readonly #memoryAccount: MemoryAccount;
  /** The node may still send. */
  #grantedBytes: number;
  /** Given on since the last grant. */
  #takenBytes = 0;
  #sink: BodySink | undefined;
  #paused = false;
  /**
   * Bytes that came while nobody took them, in memory of their own: a piece may be a small part of what was received
   * with it.
   */
  #held: Buffer = nothing;
  #heldBytes = 0;
  #end: End | undefined;
  /** Set once nothing is told to the sink any more. */
  #over = false;
  /** When a byte came last, or was waited for again. */
  #waitingSinceMs = Number.POSITIVE_INFINITY;

  /** `memoryAccount`: on whose account is held what nobody takes. */
  constructor(owner: AnswerOwner, windowBytes: number, memoryAccount: MemoryAccount) {
    this.#owner = owner;
    this.#memoryAccount = memoryAccount;
    this.#windowBytes = windowBytes;
    this.#grantedBytes = windowBytes;
  }

  /** Bytes that the node may still have on its way. */
  get grantedBytes(): number {
    return this.#grantedBytes;
  }

  /** Since when somebody waits for the node; never, while nobody takes what comes. */
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

  /** A piece came. False where it is more than was granted. */
  push(bytes: Buffer): boolean {
    if (bytes.length > this.#grantedBytes) return false;
    this.#grantedBytes -= bytes.length;
    if (this.#over || bytes.length === 0) return true;
    if (!this.#sink || this.#paused || this.#heldBytes > 0) {
      this.#hold(bytes);
      return true;
    }
    this.#waitingSinceMs = exactMs();
    this.#sink.data(ByteSpan.of(bytes));
    this.#took(bytes.length);
    return true;
  }

  /** All of it came. */
  complete(): void {
    this.#end ??= "complete";
    this.#give();
  }

  /** It broke off: what came before is given first. */
  fail(error: unknown): void {
    this.#end ??= { error };
    this.#give();
  }

  #hold(bytes: Buffer): void {
    const length = this.#heldBytes + bytes.length;
    if (length > this.#held.length) {
      const doubled = Math.max(length, 2 * this.#held.length, minHeldBytes);
      const room = Math.max(length, Math.min(doubled, this.#windowBytes));
      const refusal = this.#memoryAccount.take("tunnels", room - this.#held.length);
      if (refusal) {
        this.#breakOff(refusal);
        return;
      }
      const held = Buffer.allocUnsafeSlow(room);
      this.#held.copy(held, 0, 0, this.#heldBytes);
      this.#held = held;
    }
    bytes.copy(this.#held, this.#heldBytes);
    this.#heldBytes = length;
  }

  #give(): void {
    const sink = this.#sink;
    if (!sink || this.#paused || this.#over) return;
    if (this.#heldBytes > 0) {
      const held = new ByteSpan(this.#held, 0, this.#heldBytes);
      this.#letGo();
      sink.data(held);
      this.#took(held.length);
      // Whoever took it may have paused or cancelled.
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

  /** There is no room for what nobody takes: the node stops, and whoever takes the answer is told when it goes on. */
  #breakOff(error: unknown): void {
    this.#letGo();
    this.#owner.cancelled();
    this.fail(error);
  }

  #letGo(): void {
    if (this.#held.length > 0) this.#memoryAccount.release("tunnels", this.#held.length);
    this.#held = nothing;
    this.#heldBytes = 0;
  }

  #stop(): void {
    this.#over = true;
    this.#letGo();
    this.#waitingSinceMs = Number.POSITIVE_INFINITY;
  }
}
