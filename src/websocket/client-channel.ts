// The client's end of the connection below a WebSocket. It consists of a socket, and of bytes that the kernel has not
// accepted yet.
import { bufferedBytes } from "../base/bytes/buffered-bytes.ts";
import type { ByteChannelListener, PausableChannel } from "../http1/byte-channel.ts";
import { ConnectionOutput } from "../http1/server/connection-output.ts";
import type { ClientSocket } from "./client-socket.ts";

export class ClientChannel implements PausableChannel {
  readonly peer: string;
  readonly #socket: ClientSocket;
  readonly #output: ConnectionOutput;
  #early: Buffer | undefined;
  #listener: ByteChannelListener | undefined;
  #ending = false;
  #closed = false;

  /** `early` holds the bytes that were read after the head of the answer. */
  constructor(socket: ClientSocket, peer: string, early: Buffer | undefined) {
    this.#socket = socket;
    this.#output = new ConnectionOutput(socket, bufferedBytes.bounded);
    this.peer = peer;
    this.#early = early;
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
    if (early && early.length > 0) listener.data(early);
  }

  write(bytes: Uint8Array): void {
    if (this.closed || bytes.byteLength === 0) return;
    this.#output.writeCopied(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  }

  end(): void {
    if (this.closed) return;
    this.#ending = true;
    if (!this.#output.behind) this.#socket.end();
  }

  terminate(): void {
    if (!this.#closed) this.#socket.terminate();
    this.didClose();
  }

  pause(): void {
    if (!this.closed) this.#socket.pause();
  }

  resume(): void {
    if (!this.closed) this.#socket.resume();
  }

  /** Called with the bytes that arrived. */
  data(bytes: Buffer): void {
    if (this.#ending) return;
    if (this.#listener) this.#listener.data(bytes);
    else this.#early = this.#early ? Buffer.concat([this.#early, bytes]) : bytes;
  }

  /** Called when the kernel may accept bytes again. */
  drain(): void {
    if (!this.#output.behind) return;
    this.#output.flush();
    if (this.#output.behind) return;
    if (this.#ending) this.#socket.end();
    else this.#listener?.drained();
  }

  /** Called after either side has closed the socket. */
  didClose(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#early = undefined;
    this.#output.clear();
    this.#listener?.closed();
  }
}
