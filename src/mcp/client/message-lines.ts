// Splits the output of a process into JSON-RPC messages, one per line. Refuses longer lines and any other output.
import { deserializeMessage, type JSONRPCMessage } from "@modelcontextprotocol/client";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { GatheredBytes } from "../../base/bytes/gathered-bytes.ts";

const lineFeed = 10;
/** Maximum output without a response, as a multiple of the longest line: progress, logs, requests and notifications. */
const maxLines = 4;
/** Minimum bytes that a message counts as, because even short messages cost work. */
const minCounted = 1_024;
/** Bytes that an empty line counts as. A node sends one each minute to keep the stream alive. */
const emptyCounted = 16;

export interface MessageTaker {
  take(message: JSONRPCMessage): void;
  /** Called when the output is refused. Reading must stop, because nothing after an invalid line is reliable. */
  refuse(what: string, detail: string): void;
}

export class MessageLines {
  readonly #maxBytes: number;
  readonly #taker: MessageTaker;
  /** The line that is not complete yet. */
  readonly #begun = new GatheredBytes();
  /** Bytes of output since the last response to a request. */
  #unasked = 0;
  /** Number of requests to the process that have no response yet. */
  #requests = 0;

  /** `maxBytes` is the maximum length of a line. */
  constructor(maxBytes: number, taker: MessageTaker) {
    this.#maxBytes = maxBytes;
    this.#taker = taker;
  }

  /**
   * Records a message to the process. A request permits one response, and that response resets the limit on other
   * output.
   */
  sent(message: JSONRPCMessage): void {
    if ("method" in message && "id" in message) this.#requests++;
  }

  /** Reads more output. Returns false if no more is accepted. */
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

  /** Frees the incomplete line. */
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
    if (!("method" in message) && this.#requests > 0) {
      this.#requests--;
      this.#unasked = 0;
    } else if (!this.#said(Math.max(bytes.length, minCounted))) return false;
    this.#taker.take(message);
    return true;
  }

  /** Counts a message that is no response. Returns false if there are too many. */
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
