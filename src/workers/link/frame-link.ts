// Messages between two processes of one server over a Unix socket: those of one turn of the event loop are one frame.
import { sendAtTurnEnd } from "../../base/turn-end.ts";

/** The name of a message, then its values: what JSON can say. */
export type Message = readonly [name: string, ...values: unknown[]];

/** The part of Bun's socket that a link needs. */
export interface LinkSocket {
  /** Gives how many bytes were taken. */
  write(bytes: Uint8Array): number;
  end(): void;
  terminate(): void;
}

export interface LinkListener {
  /** Called in the order in which the other end sent them. What it throws ends the link. */
  received(message: Message): void;
  /** Called once; nothing is received behind it. `fault`: why this end gave the other one up. */
  closed(fault: string | undefined): void;
}

const headBytes = 4;
/** A frame is what one turn had to say: far below it. */
const longestFrame = 64 * 1024 * 1024;
/** An end that does not take so much is stuck. */
const mostUnsent = 128 * 1024 * 1024;

export class FrameLink {
  readonly #socket: LinkSocket;
  readonly #listener: LinkListener;
  #outgoing: Message[] = [];
  readonly #flush = () => this.#send();
  /** Frames, or their rest, that the kernel has not taken. */
  #unsent: Buffer[] = [];
  #unsentBytes = 0;
  #incoming: Buffer[] = [];
  #incomingBytes = 0;
  #isClosed = false;

  constructor(socket: LinkSocket, listener: LinkListener) {
    this.#socket = socket;
    this.#listener = listener;
  }

  /** It leaves with all others of this turn. Nothing is sent over a link that was closed. */
  send(...message: Message): void {
    if (this.#isClosed) return;
    if (this.#outgoing.push(message) === 1) sendAtTurnEnd(this.#flush);
  }

  /** Bytes came. */
  data(bytes: Buffer): void {
    // They are Bun's, and used again by the next call.
    let rest = bytes;
    if (this.#incomingBytes > 0) {
      this.#incoming.push(Buffer.from(bytes));
      this.#incomingBytes += bytes.length;
      const wanted = this.#wanted();
      if (wanted === undefined || this.#incomingBytes < wanted) return;
      rest = Buffer.concat(this.#incoming, this.#incomingBytes);
      this.#incoming = [];
      this.#incomingBytes = 0;
    }
    rest = this.#take(rest);
    if (rest.length === 0 || this.#isClosed) return;
    this.#incoming.push(Buffer.from(rest));
    this.#incomingBytes = rest.length;
  }

  /** The kernel takes more. */
  drain(): void {
    while (this.#unsent.length > 0) {
      const [first] = this.#unsent as [Buffer];
      const taken = Math.max(0, this.#socket.write(first));
      this.#unsentBytes -= taken;
      if (taken < first.length) {
        this.#unsent[0] = first.subarray(taken);
        return;
      }
      this.#unsent.shift();
    }
  }

  /** The socket ended. */
  ended(): void {
    this.#close(undefined);
  }

  /** Sends what there is, and ends it. */
  end(): void {
    this.#send();
    this.#isClosed = true;
    this.#socket.end();
  }

  /** Bytes that the frame at the beginning has, once its head is here. */
  #wanted(): number | undefined {
    const [first] = this.#incoming;
    if (first === undefined || this.#incomingBytes < headBytes) return undefined;
    const head = first.length >= headBytes ? first : Buffer.concat(this.#incoming, this.#incomingBytes);
    return headBytes + head.readUInt32LE(0);
  }

  /** Tells all frames that are whole; gives the rest. */
  #take(bytes: Buffer): Buffer {
    let at = 0;
    while (bytes.length - at >= headBytes && !this.#isClosed) {
      const length = bytes.readUInt32LE(at);
      if (length > longestFrame) {
        this.#fail(`a frame of ${length} bytes`);
        break;
      }
      const end = at + headBytes + length;
      if (bytes.length < end) break;
      this.#tell(bytes.toString("utf8", at + headBytes, end));
      at = end;
    }
    return bytes.subarray(at);
  }

  #tell(text: string): void {
    try {
      for (const message of JSON.parse(text) as Message[]) this.#listener.received(message);
    } catch (error) {
      this.#fail(error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
  }

  #send(): void {
    if (this.#isClosed || this.#outgoing.length === 0) return;
    const text = JSON.stringify(this.#outgoing);
    this.#outgoing = [];
    const frame = Buffer.allocUnsafe(headBytes + Buffer.byteLength(text));
    frame.writeUInt32LE(frame.length - headBytes, 0);
    frame.write(text, headBytes);
    const taken = this.#unsent.length > 0 ? 0 : Math.max(0, this.#socket.write(frame));
    if (taken === frame.length) return;
    this.#unsent.push(frame.subarray(taken));
    this.#unsentBytes += frame.length - taken;
    if (this.#unsentBytes > mostUnsent) this.#fail("the other end does not read");
  }

  #fail(fault: string): void {
    this.#socket.terminate();
    this.#close(fault);
  }

  #close(fault: string | undefined): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#unsent = [];
    this.#incoming = [];
    this.#listener.closed(fault);
  }
}
