// Messages out of the bytes of a process as they come, one on each line: none larger than may be, and none that is not of the protocol.
import { deserializeMessage, type JSONRPCMessage } from "@modelcontextprotocol/client";
import { heldBytes } from "../../base/bytes/held-bytes.ts";

const lineFeed = 10;
/** What a process says without answering anything, in lines of the longest kind: progress, logs, questions and changes. */
const mostLines = 4;
/** Short ones count as so many bytes: each is work. */
const leastCounted = 1_024;

export interface MessageTaker {
  take(message: JSONRPCMessage): void;
  /** Nothing more is taken: nobody knows what such a process would say next. */
  refuse(what: string, detail: string): void;
}

export class MessageLines {
  readonly #mostBytes: number;
  readonly #taker: MessageTaker;
  #pieces: Uint8Array[] = [];
  #length = 0;
  /** Bytes since it answered. */
  #unasked = 0;

  /** `mostBytes`: of one line. */
  constructor(mostBytes: number, taker: MessageTaker) {
    this.#mostBytes = mostBytes;
    this.#taker = taker;
  }

  /** Keeps `bytes`, which must not change. False once nothing more is taken. */
  push(bytes: Uint8Array): boolean {
    let from = 0;
    for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, from)) {
      this.#pieces.push(bytes.subarray(from, end));
      const line = Buffer.concat(this.#pieces);
      this.end();
      if (!this.#line(line)) return false;
      from = end + 1;
    }
    const rest = bytes.subarray(from);
    if (rest.length === 0) return true;
    this.#pieces.push(rest);
    this.#length += rest.length;
    heldBytes.bounded.take("answers", rest.length);
    return this.#length <= this.#mostBytes || this.#tooLong();
  }

  /** What waits for its end is let go of. */
  end(): void {
    heldBytes.bounded.release("answers", this.#length);
    this.#pieces = [];
    this.#length = 0;
  }

  #line(bytes: Buffer): boolean {
    if (bytes.length > this.#mostBytes) return this.#tooLong();
    const text = bytes.toString().trim();
    if (text === "") return true;
    let message: JSONRPCMessage;
    try {
      message = deserializeMessage(text);
    } catch {
      const what = "wrote what is no message of the protocol to its standard output, and was ended";
      return this.#refuse(what, "logs belong to standard error");
    }
    this.#unasked = "method" in message ? this.#unasked + Math.max(bytes.length, leastCounted) : 0;
    if (this.#unasked > mostLines * this.#mostBytes) {
      return this.#refuse("said too much without an answer, and was ended", `${this.#unasked} bytes`);
    }
    this.#taker.take(message);
    return true;
  }

  #tooLong(): false {
    const most = `more than ${this.#mostBytes} bytes, the most that a result of it may have`;
    return this.#refuse(`wrote a line of ${most}, and was ended`, "line too long");
  }

  #refuse(what: string, detail: string): false {
    this.end();
    this.#taker.refuse(what, detail);
    return false;
  }
}
