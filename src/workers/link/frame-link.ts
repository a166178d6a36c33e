// Messages between two processes of one server over a Unix socket. All messages of one event loop tick leave in one
// write.
import { sendAtTurnEnd } from "../../base/turn-end.ts";

/** A message: its name, then its values, in JSON. */
export type Message = readonly [name: string, ...values: unknown[]];

/** The part of Bun's socket that a link needs. */
export interface LinkSocket {
  /** Returns how many bytes were accepted. */
  write(bytes: Uint8Array, byteOffset: number, byteLength: number): number;
  end(): void;
  terminate(): void;
}

export interface LinkListener {
  /**
   * Called for each JSON message. The calls of `received` and `figures` come in the order of sending. An exception in
   * either of them ends the link.
   */
  received(message: Message): void;
  /**
   * Called with a message without text. Its numbers are in `words` from `at` on, until this call returns. `kind` is the
   * message's kind, which the sender chose.
   */
  figures(kind: number, words: Words, at: number): void;
  /** Called once, as the last event. `fault` is the reason why this end closed the link. */
  closed(fault: string | undefined): void;
}

/** Memory for messages: the same bytes as numbers of eight bytes each. */
export interface Words {
  readonly numbers: Float64Array;
  readonly bytes: Buffer;
}

/** The kind of a JSON message. Callers define the other kinds. */
const text = 0;
const wordBytes = 8;
/**
 * The length of a header: the number of following bytes, then the kind, 32 bits each. The next message begins at a
 * whole word.
 */
const headBytes = wordBytes;
/** Maximum bytes of one message, far above any real one. */
const maxMessageLength = 64 * 1024 * 1024;
/** Maximum unsent bytes. Beyond it, the other process counts as stuck. */
const maxUnsent = 128 * 1024 * 1024;
const defaultBytes = 64 * 1024;

/** A buffer that grows with its content, and shrinks again once emptied. */
class Space implements Words {
  numbers = new Float64Array(0);
  bytes = Buffer.alloc(0);
  heads = new Uint32Array(0);
  filled = 0;

  /** Makes space for this many more bytes. */
  need(more: number): void {
    if (this.filled + more <= this.bytes.length) return;
    this.#take(Math.max(defaultBytes, 2 ** Math.ceil(Math.log2(this.filled + more))));
  }

  /** Removes everything up to `at`. */
  forget(at: number): void {
    if (at === 0) return;
    if (at < this.filled) this.bytes.copyWithin(0, at, this.filled);
    this.filled -= at;
    if (this.filled === 0 && this.bytes.length > defaultBytes) this.#take(defaultBytes);
  }

  #take(length: number): void {
    const memory = new ArrayBuffer(length);
    const bytes = Buffer.from(memory);
    bytes.set(this.bytes.subarray(0, this.filled));
    this.bytes = bytes;
    this.numbers = new Float64Array(memory);
    this.heads = new Uint32Array(memory);
  }
}

export class FrameLink {
  readonly #socket: LinkSocket;
  readonly #listener: LinkListener;
  readonly #outgoing = new Space();
  readonly #incoming = new Space();
  readonly #flush = () => this.#send();
  /** The bytes that the kernel has not accepted. */
  #unsent: Buffer[] = [];
  #unsentBytes = 0;
  #isDue = false;
  #isClosed = false;

  constructor(socket: LinkSocket, listener: LinkListener) {
    this.#socket = socket;
    this.#listener = listener;
  }

  /** Sends a message together with all others of this tick. A closed link sends nothing. */
  send(...message: Message): void {
    const json = JSON.stringify(message);
    const length = Buffer.byteLength(json);
    const at = this.#begin(text, length);
    this.#outgoing.bytes.write(json, at * wordBytes, length);
  }

  /**
   * Begins a message of this many numbers and returns the position of the first. Write them into `words` there before
   * anything else is sent. `kind` must be above 0.
   */
  begin(kind: number, numbers: number): number {
    return this.#begin(kind, numbers * wordBytes);
  }

  get words(): Words {
    return this.#outgoing;
  }

  /** Receives bytes, which Bun owns and reuses for the next call. */
  data(bytes: Uint8Array): void {
    if (this.#isClosed) return;
    const incoming = this.#incoming;
    incoming.need(bytes.length);
    incoming.bytes.set(bytes, incoming.filled);
    incoming.filled += bytes.length;
    incoming.forget(this.#take(incoming));
  }

  /** Called when the kernel accepts more. */
  drain(): void {
    while (this.#unsent.length > 0) {
      const [first] = this.#unsent as [Buffer];
      const taken = Math.max(0, this.#socket.write(first, 0, first.length));
      this.#unsentBytes -= taken;
      if (taken < first.length) {
        this.#unsent[0] = first.subarray(taken);
        return;
      }
      this.#unsent.shift();
    }
  }

  /** Called when the socket has ended. */
  ended(): void {
    this.#close(undefined);
  }

  /** Sends the remaining bytes, and closes the link. */
  end(): void {
    this.#send();
    this.#isClosed = true;
    this.#socket.end();
  }

  /** Begins a message and returns the position of its first word. */
  #begin(kind: number, length: number): number {
    const space = this.#outgoing;
    // Messages over a closed link are overwritten by later ones.
    if (this.#isClosed) space.filled = 0;
    space.need(headBytes + whole(length));
    const at = space.filled;
    space.heads[at / 4] = length;
    space.heads[at / 4 + 1] = kind;
    space.filled = at + headBytes + whole(length);
    if (!this.#isDue && !this.#isClosed) {
      this.#isDue = true;
      sendAtTurnEnd(this.#flush);
    }
    return (at + headBytes) / wordBytes;
  }

  /** Delivers all complete messages. Returns the start of the incomplete rest. */
  #take(space: Space): number {
    let at = 0;
    while (space.filled - at >= headBytes && !this.#isClosed) {
      const length = space.heads[at / 4] as number;
      if (length > maxMessageLength) {
        this.#fail(`a message of ${length} bytes`);
        break;
      }
      const end = at + headBytes + whole(length);
      if (space.filled < end) break;
      this.#deliver(space, space.heads[at / 4 + 1] as number, at + headBytes, length);
      at = end;
    }
    return at;
  }

  #deliver(space: Space, kind: number, at: number, length: number): void {
    try {
      if (kind !== text) this.#listener.figures(kind, space, at / wordBytes);
      else this.#listener.received(JSON.parse(space.bytes.toString("utf8", at, at + length)) as Message);
    } catch (error) {
      this.#fail(error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
  }

  #send(): void {
    this.#isDue = false;
    const space = this.#outgoing;
    const length = space.filled;
    if (this.#isClosed || length === 0) return;
    const taken = this.#unsent.length > 0 ? 0 : Math.max(0, this.#socket.write(space.bytes, 0, length));
    if (taken < length) {
      this.#unsent.push(Buffer.from(space.bytes.subarray(taken, length)));
      this.#unsentBytes += length - taken;
    }
    space.forget(length);
    if (this.#unsentBytes > maxUnsent) this.#fail("the other end does not read");
  }

  #fail(fault: string): void {
    this.#socket.terminate();
    this.#close(fault);
  }

  #close(fault: string | undefined): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#unsent = [];
    this.#listener.closed(fault);
  }
}

/** Rounds a number of bytes up to whole words. */
function whole(bytes: number): number {
  return (bytes + wordBytes - 1) & -wordBytes;
}
