// Messages out of the bytes of a process as they come, one on each line: none larger than may be, and none that is not of the protocol.
import { deserializeMessage, type JSONRPCMessage } from "@modelcontextprotocol/client";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { GatheredBytes } from "../../base/bytes/gathered-bytes.ts";

const lineFeed = 10;
/** What a process says without answering anything, in lines of the longest kind: progress, logs, questions and changes. */
const maxLines = 4;
/** Short ones count as so many bytes: each is work. */
const minCounted = 1_024;
/** Lines without anything are less work, and a node sends one each minute to say that it is there. */
const emptyCounted = 16;

export interface MessageTaker {
  take(message: JSONRPCMessage): void;
  /** Nothing more is taken: nobody knows what such a process would say next. */
  refuse(what: string, detail: string): void;
}

export class MessageLines {
  readonly #maxBytes: number;
  readonly #taker: MessageTaker;
  /** What waits for its end, however small the pieces are in which it comes. */
  readonly #begun = new GatheredBytes();
  /** Bytes since it answered. */
  #unasked = 0;

  /** `maxBytes`: of one line. */
  constructor(maxBytes: number, taker: MessageTaker) {
    this.#maxBytes = maxBytes;
    this.#taker = taker;
  }

  /** False once nothing more is taken. */
  push(bytes: Uint8Array): boolean {
    let from = 0;
    for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, from)) {
      if (!this.#line(this.#endOfLine(bytes.subarray(from, end)))) return false;
      from = end + 1;
    }
    const rest = bytes.subarray(from);
    if (rest.length === 0) return true;
    this.#begun.add(rest);
    bufferedBytes.bounded.take("answers", rest.length);
    return this.#begun.length <= this.#maxBytes || this.#tooLong();
  }

  /** What waits for its end is let go of. */
  end(): void {
    bufferedBytes.bounded.release("answers", this.#begun.take().length);
  }

  #endOfLine(last: Uint8Array): Buffer {
    if (this.#begun.length === 0) return Buffer.from(last.buffer, last.byteOffset, last.byteLength);
    bufferedBytes.bounded.release("answers", this.#begun.length);
    this.#begun.add(last);
    return this.#begun.take();
  }

  #line(bytes: Buffer): boolean {
    if (bytes.length > this.#maxBytes) return this.#tooLong();
    const text = bytes.toString().trim();
    if (text === "") return this.#said(Math.max(bytes.length, emptyCounted));
    let message: JSONRPCMessage;
    try {
      message = deserializeMessage(text);
    } catch {
      const what = "wrote what is no message of the protocol to its standard output, and was ended";
      return this.#refuse(what, "logs belong to standard error");
    }
    if (!("method" in message)) this.#unasked = 0;
    else if (!this.#said(Math.max(bytes.length, minCounted))) return false;
    this.#taker.take(message);
    return true;
  }

  /** Something that answers nothing. */
  #said(bytes: number): boolean {
    this.#unasked += bytes;
    if (this.#unasked <= maxLines * this.#maxBytes) return true;
    return this.#refuse("said too much without an answer, and was ended", `${this.#unasked} bytes`);
  }

  #tooLong(): false {
    const most = `more than ${this.#maxBytes} bytes, the most that a result of it may have`;
    return this.#refuse(`wrote a line of ${most}, and was ended`, "line too long");
  }

  #refuse(what: string, detail: string): false {
    this.end();
    this.#taker.refuse(what, detail);
    return false;
  }
}
