// Builds WebSocket frames in a buffer that all connections share. All frames of one event loop tick are sent in one
// write.
import type { ByteChannel } from "../http1/byte-channel.ts";
import { applyMask, maxHeaderBytes, putFrameHead } from "./frame-format.ts";

const scratch = Buffer.allocUnsafeSlow(128 * 1024);
/** The writer whose frames are now in the buffer. These frames are written before another writer adds a frame. */
let owner: FrameWriter | undefined;
let length = 0;

/** Random masks. Many masks are generated at a time. They must not be predictable (RFC 6455, 5.3). */
const masks = new Uint8Array(16 * 1024);
let masksUsed = masks.length;

export class FrameWriter {
  readonly #channel: ByteChannel;
  readonly #masked: boolean;
  #scheduled = false;

  /**
   * `masked` is true for a client, because a client must mask its frames. `masked` is false for a server, because a
   * server must not.
   */
  constructor(channel: ByteChannel, masked: boolean) {
    this.#channel = channel;
    this.#masked = masked;
  }

  /** Number of bytes that the kernel has not accepted yet. */
  get unsentBytes(): number {
    return this.#channel.unsentBytes + (owner === this ? length : 0);
  }

  /** Adds a frame. Its payload is `first` followed by `second`, and both are copied or written at once. */
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
    // The flush waits until the end of the tick, so that frames that other sockets cause are sent in the same write.
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

  /** Writes a frame into the buffer. Returns the offset after this frame. */
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

/** Returns the offset of a mask that has not been used yet. */
function nextMask(): number {
  if (masksUsed === masks.length) {
    crypto.getRandomValues(masks);
    masksUsed = 0;
  }
  masksUsed += 4;
  return masksUsed - 4;
}
