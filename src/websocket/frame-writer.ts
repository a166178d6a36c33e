// Composes WebSocket frames in a buffer that all connections share. Frames of one event loop tick leave in one write.
import type { ByteChannel } from "../http1/byte-channel.ts";
import { applyMask, maxHeaderBytes, putFrameHead } from "./frame-format.ts";

const scratch = Buffer.allocUnsafeSlow(128 * 1024);
/** The writer whose frames are in the buffer. Before another writer adds a frame, these frames are written. */
let owner: FrameWriter | undefined;
let length = 0;

/** Random masks, drawn many at a time, because they must not be predictable (RFC 6455, 5.3). */
const masks = new Uint8Array(16 * 1024);
let masksUsed = masks.length;

export class FrameWriter {
  readonly #channel: ByteChannel;
  readonly #masked: boolean;
  #scheduled = false;

  /** `masked` is true for a client, which must mask its frames, and false for a server, which must not. */
  constructor(channel: ByteChannel, masked: boolean) {
    this.#channel = channel;
    this.#masked = masked;
  }

  /** Bytes that the kernel has not accepted yet. */
  get unsentBytes(): number {
    return this.#channel.unsentBytes + (owner === this ? length : 0);
  }

  /** Adds a frame whose payload is `first` followed by `second`. Both are copied or written at once. */
  add(opcode: number, first: Uint8Array, second: Uint8Array | undefined): void {
    const payloadLength = first.byteLength + (second?.byteLength ?? 0);
    const most = payloadLength + maxHeaderBytes;
    if (owner !== this) {
      owner?.flush();
      owner = this;
    } else if (length + most > scratch.length) {
      this.flush();
      owner = this;
    }
    if (most > scratch.length) {
      const bytes = Buffer.allocUnsafeSlow(most);
      this.#channel.write(bytes.subarray(0, this.#put(bytes, 0, opcode, first, second)));
      return;
    }
    length = this.#put(scratch, length, opcode, first, second);
    if (this.#scheduled) return;
    this.#scheduled = true;
    // The flush waits for the end of the tick, so that frames caused by other sockets go with it.
    setImmediate(() => {
      this.#scheduled = false;
      this.flush();
    });
  }

  flush(): void {
    if (owner !== this) return;
    owner = undefined;
    const end = length;
    length = 0;
    if (end > 0) this.#channel.write(scratch.subarray(0, end));
  }

  /** Writes a frame into the buffer. Returns the offset after the frame. */
  #put(target: Buffer, start: number, opcode: number, first: Uint8Array, second: Uint8Array | undefined): number {
    const payloadLength = first.byteLength + (second?.byteLength ?? 0);
    let at = putFrameHead(target, start, opcode, payloadLength, this.#masked);
    let mask = 0;
    if (this.#masked) {
      mask = nextMask();
      for (let index = 0; index < 4; index++) target[at++] = masks[mask + index] as number;
    }
    const payloadStart = at;
    target.set(first, at);
    at += first.byteLength;
    if (second) {
      target.set(second, at);
      at += second.byteLength;
    }
    if (this.#masked) applyMask(target, payloadStart, at, masks, mask);
    return at;
  }
}

/** Returns the offset of an unused mask. */
function nextMask(): number {
  if (masksUsed === masks.length) {
    crypto.getRandomValues(masks);
    masksUsed = 0;
  }
  masksUsed += 4;
  return masksUsed - 4;
}
