// Reads one HTTP/1.1 response after another from a connection, however it is cut, at little cost: counts SSE events.

const headEnd = Buffer.from("\r\n\r\n");
const newline = 0x0a;
const keptTail = 512;

export class ResponseError extends Error {
  override readonly name = "ResponseError";
}

type State = "head" | "counted" | "size" | "piece" | "trailer";

/** Framing by Content-Length or chunked transfer encoding (RFC 9112, 6 and 7); anything else is refused. */
export class ResponseReader {
  status = 0;
  /** Blank lines seen in the body, which is what ends an event. */
  events = 0;
  /** The same, over all responses so far. */
  eventsInAll = 0;
  /** The last characters of the body. */
  tail = "";
  #state: State = "head";
  #pending: Buffer | undefined;
  /** Bytes of the body, or of this piece of it, still to come. */
  #left = 0;
  #lastByte = 0;

  /** Whether `bytes` completed the response; the next call begins the next one. Throws ResponseError. */
  push(bytes: Buffer): boolean {
    let rest = bytes;
    if (this.#pending) {
      rest = Buffer.concat([this.#pending, bytes]);
      this.#pending = undefined;
    }
    for (;;) {
      const used = this.#step(rest);
      if (used < 0) {
        // The runtime uses its buffer again.
        if (rest.length > 0) this.#pending = Buffer.from(rest);
        return false;
      }
      rest = rest.subarray(used);
      if (this.#state !== "head") continue;
      if (rest.length > 0) throw new ResponseError("bytes behind the end of the response");
      return true;
    }
  }

  /** Bytes that it used; -1 where it needs more. */
  #step(bytes: Buffer): number {
    switch (this.#state) {
      case "head":
        return this.#head(bytes);
      case "counted":
      case "piece":
        return this.#body(bytes);
      case "size":
        return this.#size(bytes);
      case "trailer":
        return this.#trailer(bytes);
    }
  }

  #head(bytes: Buffer): number {
    const end = bytes.indexOf(headEnd);
    if (end < 0) return -1;
    const head = bytes.toString("latin1", 0, end);
    this.status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0);
    if (this.status < 200) throw new ResponseError("no HTTP/1.1 response");
    this.events = 0;
    this.tail = "";
    this.#lastByte = 0;
    if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
      this.#state = "size";
    } else {
      const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
      if (length === undefined) throw new ResponseError("a response of unknown length");
      this.#left = Number(length);
      this.#state = this.#left === 0 ? "head" : "counted";
    }
    return end + headEnd.length;
  }

  #size(bytes: Buffer): number {
    const end = bytes.indexOf("\r\n");
    if (end < 0) return -1;
    const text = bytes.toString("latin1", 0, end);
    if (!/^[0-9a-f]{1,8}$/i.test(text)) throw new ResponseError("a malformed chunk size");
    this.#left = Number.parseInt(text, 16);
    this.#state = this.#left === 0 ? "trailer" : "piece";
    if (this.#state === "piece") this.#left += 2;
    return end + 2;
  }

  #body(bytes: Buffer): number {
    if (bytes.length === 0) return -1;
    const used = Math.min(bytes.length, this.#left);
    // A piece of chunked encoding ends in a CRLF that is no part of the body.
    const framing = this.#state === "piece" ? 2 : 0;
    const text = Math.min(used, Math.max(this.#left - framing, 0));
    if (text > 0) this.#take(bytes, text);
    this.#left -= used;
    if (this.#left === 0) this.#state = this.#state === "piece" ? "size" : "head";
    return used;
  }

  #take(bytes: Buffer, length: number): void {
    let previous = this.#lastByte === newline ? -1 : -2;
    for (let at = bytes.indexOf(newline); at >= 0 && at < length; at = bytes.indexOf(newline, at + 1)) {
      if (at === previous + 1) {
        this.events++;
        this.eventsInAll++;
        previous = -2;
      } else {
        previous = at;
      }
    }
    this.#lastByte = previous === length - 1 ? newline : 0;
    this.tail = (this.tail + bytes.toString("latin1", Math.max(0, length - keptTail), length)).slice(-keptTail);
  }

  #trailer(bytes: Buffer): number {
    if (bytes.length < 2) return -1;
    if (bytes.toString("latin1", 0, 2) !== "\r\n") throw new ResponseError("trailers");
    this.#state = "head";
    return 2;
  }
}
