// Parses the headers of HTTP/1.1 messages strictly. Refuses anything that two parsers might read differently
// (RFC 9112, 2-5).
import type { HeaderLines } from "./message.ts";

export interface RequestHead {
  method: string;
  /** The request target: a path, an absolute URL, or `*` for OPTIONS. */
  target: string;
  version: HttpVersion;
  headers: FieldLines;
}

export interface ResponseHead {
  /** The status code, from 100 to 599. */
  status: number;
  version: HttpVersion;
  headers: FieldLines;
}

export type HttpVersion = "1.0" | "1.1";

/** The error for an invalid message. `status` is the status of the answer. `message` may be sent to the client. */
export class HeadError extends Error {
  override readonly name = "HeadError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The error for a client that uses HTTP/2. Such a client would not understand an HTTP/1.1 answer. */
export class Http2PrefaceError extends HeadError {
  constructor() {
    super(505, "HTTP/2 is not spoken here. Let the client use HTTP/1.1, or put a proxy that speaks HTTP/2 in front.");
  }
}

/** Maximum header lines of a message. The caller limits their total bytes. */
export const maxFieldLines = 200;

/** For each byte: its lower case if it may be in a token (RFC 9110, 5.6.2), otherwise 0. */
const tokenBytes = new Uint8Array(256);
/** A flag for each byte: 1 if the byte may be in a header value (RFC 9110, 5.5). */
const valueBytes = new Uint8Array(256);
/** A flag for each byte: 1 if the byte may be in a request target. */
const targetBytes = new Uint8Array(256);
for (let code = 0; code < 256; code++) {
  const character = String.fromCharCode(code);
  if (/[\w!#$%&'*+.^`|~-]/.test(character)) tokenBytes[code] = character.toLowerCase().charCodeAt(0);
  if (code === 0x09 || (code >= 0x20 && code !== 0x7f)) valueBytes[code] = 1;
  if (code > 0x20 && code < 0x7f) targetBytes[code] = 1;
}

const carriageReturn = 0x0d;
const lineFeed = 0x0a;
const space = 0x20;
const tab = 0x09;
const colon = 0x3a;
const slash = 0x2f;

/** The first line that an HTTP/2 client sends without negotiation (RFC 9113, 3.4). */
const http2Preface = "PRI * HTTP/2.0";

/**
 * Parses the headers of a request. `text` has one character for each byte (latin1) and does not include the empty line
 * at the end. Throws a HeadError: 400 for invalid headers, 431 for too many, 505 for another HTTP version.
 */
export function parseRequestHead(text: string): RequestHead {
  let position = 0;
  while (position < text.length && tokenBytes[text.charCodeAt(position)] !== 0) position++;
  if (position === 0 || text.charCodeAt(position) !== space) throw malformedRequestLine();
  const method = text.slice(0, position);
  const targetStart = ++position;
  while (position < text.length && targetBytes[text.charCodeAt(position)] === 1) position++;
  if (position === targetStart || text.charCodeAt(position) !== space) throw malformedRequestLine();
  const target = text.slice(targetStart, position);
  const version = readVersion(text, position + 1, malformedRequestLine);
  position += 9;
  if (position < text.length && !isLineEnd(text, position)) throw malformedRequestLine();
  if (target.charCodeAt(0) !== slash && !(target === "*" && method === "OPTIONS") && !/^https?:\/\//i.test(target)) {
    throw new HeadError(400, "The request target must be a path that starts with /.");
  }
  return { method, target, version, headers: readFields(text, position) };
}

/**
 * Parses the headers of a response. `text` has one character for each byte (latin1) and does not include the empty line
 * at the end. The reason phrase is ignored. Throws a HeadError.
 */
export function parseResponseHead(text: string): ResponseHead {
  const version = readVersion(text, 0, malformedStatusLine);
  const status = digitAt(text, 9) * 100 + digitAt(text, 10) * 10 + digitAt(text, 11);
  if (text.charCodeAt(8) !== space || !(status >= 100 && status <= 599)) throw malformedStatusLine();
  let position = 12;
  if (text.charCodeAt(position) === space) {
    while (position < text.length && valueBytes[text.charCodeAt(position)] === 1) position++;
  }
  if (position < text.length && !isLineEnd(text, position)) throw malformedStatusLine();
  return { status, version, headers: readFields(text, position) };
}

const responseStart = Buffer.from("HTTP/1.");

/**
 * Throws a HeadError if an incomplete response cannot become valid any more. Without this check, the client would wait
 * for the rest. The response begins at `start`, and the bytes before `searched` were checked already. Lines that end in
 * LF alone are refused although RFC 9112, 2.2 allows them, because parsers that read a message differently are a risk.
 */
export function checkPartialResponse(bytes: Buffer, start: number, searched: number): void {
  const known = Math.min(responseStart.length, bytes.length - start);
  if (bytes.compare(responseStart, 0, known, start, start + known) !== 0) {
    throw new HeadError(400, "An answer must begin with HTTP/1.1.");
  }
  for (let at = bytes.indexOf(lineFeed, Math.max(start, searched)); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) {
    if (bytes[at - 1] !== carriageReturn) {
      throw new HeadError(400, "The lines of an answer's head must end in CRLF, not in LF alone.");
    }
  }
}

/** Parses header lines without a first line, such as the trailers of a chunked body. Throws a HeadError. */
export function parseFieldLines(text: string): FieldLines {
  return readFields(`\r\n${text}`, 0);
}

function readVersion(text: string, start: number, malformed: () => HeadError): HttpVersion {
  if (text.startsWith("HTTP/1.1", start)) return "1.1";
  if (text.startsWith("HTTP/1.0", start)) return "1.0";
  if (text === http2Preface) throw new Http2PrefaceError();
  if (/^HTTP\/\d\.\d$/.test(text.slice(start, start + 8))) {
    throw new HeadError(505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.");
  }
  throw malformed();
}

/** Parses the header lines from `position` to the end. A CRLF precedes each line. */
function readFields(text: string, position: number): FieldLines {
  const offsets: number[] = [];
  const { length } = text;
  let at = position;
  while (at < length) {
    // The two bytes at `at` are a CRLF, which has already been checked.
    const nameStart = at + 2;
    at = nameStart;
    while (at < length && tokenBytes[text.charCodeAt(at)] !== 0) at++;
    if (at === nameStart || text.charCodeAt(at) !== colon) throw malformedName(text, nameStart, at);
    const nameEnd = at++;
    while (at < length && valueBytes[text.charCodeAt(at)] === 1) at++;
    if (at < length && !isLineEnd(text, at)) {
      const name = text.slice(nameStart, nameEnd);
      throw new HeadError(400, `The header ${name} has a control character in its value.`);
    }
    if (offsets.length === 3 * maxFieldLines) {
      throw new HeadError(431, `The request has more than ${maxFieldLines} headers.`);
    }
    offsets.push(nameStart, nameEnd, at);
  }
  return new FieldLines(text, offsets);
}

/** The header lines of a message. Only offsets are stored. A value is extracted when a caller asks for it. */
export class FieldLines implements HeaderLines {
  readonly #text: string;
  /** Three offsets per line: the start of the name, its end (the colon), and the end of the value. */
  readonly #offsets: readonly number[];
  /** Cached values, by the index of their first line in `#offsets`. Undefined if values are not cached. */
  #values: Record<number, string> | undefined;
  /** A Content-Length that replaces the one in the text. */
  #length: string | undefined;

  constructor(text: string, offsets: readonly number[]) {
    this.#text = text;
    this.#offsets = offsets;
  }

  get(name: string): string | null {
    const first = this.#find(name, 0);
    if (first < 0) return null;
    if (this.#length !== undefined && name === "content-length") return this.#length;
    const values = this.#values;
    if (!values) return this.#joined(name, first);
    let value = values[first];
    if (value === undefined) {
      value = this.#joined(name, first);
      values[first] = value;
    }
    return value;
  }

  /** Turns on the cache of values, for headers that are read repeatedly. */
  keepValues(): void {
    this.#values ??= {};
  }

  /** Returns the same headers with another Content-Length. The headers must contain exactly one. */
  withLength(length: string): FieldLines {
    const fields = new FieldLines(this.#text, this.#offsets);
    fields.#values = this.#values;
    fields.#length = length;
    return fields;
  }

  has(name: string): boolean {
    return this.#find(name, 0) >= 0;
  }

  keys(): Iterable<string> {
    const names = new Set<string>();
    for (let index = 0; index < this.#offsets.length; index += 3) {
      names.add(this.#text.slice(this.#offsets[index], this.#offsets[index + 1]).toLowerCase());
    }
    return names;
  }

  /**
   * Returns the original lines except those named in `without`. Each line has its line end, and one character for each
   * byte.
   */
  lines(without: ReadonlySet<string>): string {
    const offsets = this.#offsets;
    const text = this.#text;
    let lines = "";
    for (let index = 0; index < offsets.length; index += 3) {
      const start = offsets[index] as number;
      const name = text.slice(start, offsets[index + 1]);
      const key = name.toLowerCase();
      if (without.has(key)) continue;
      const isPatched = this.#length !== undefined && key === "content-length";
      lines += `${isPatched ? `${name}: ${this.#length}` : text.slice(start, offsets[index + 2])}\r\n`;
    }
    return lines;
  }

  #joined(name: string, first: number): string {
    let value = this.#value(first);
    for (let next = this.#find(name, first + 3); next >= 0; next = this.#find(name, next + 3)) {
      value += `, ${this.#value(next)}`;
    }
    return value;
  }

  #find(name: string, from: number): number {
    const offsets = this.#offsets;
    const text = this.#text;
    const { length } = name;
    for (let index = from; index < offsets.length; index += 3) {
      const start = offsets[index] as number;
      if ((offsets[index + 1] as number) - start !== length) continue;
      let same = 0;
      while (same < length && tokenBytes[text.charCodeAt(start + same)] === name.charCodeAt(same)) same++;
      if (same === length) return index;
    }
    return -1;
  }

  #value(index: number): string {
    const text = this.#text;
    let start = (this.#offsets[index + 1] as number) + 1;
    let end = this.#offsets[index + 2] as number;
    while (start < end && isBlank(text.charCodeAt(start))) start++;
    while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
    return text.slice(start, end);
  }
}

/** Reports whether the byte may be in a header name (RFC 9110, 5.6.2). */
export function isTokenByte(byte: number): boolean {
  return tokenBytes[byte] !== 0;
}

function isBlank(code: number): boolean {
  return code === space || code === tab;
}

function isLineEnd(text: string, position: number): boolean {
  return text.charCodeAt(position) === carriageReturn && text.charCodeAt(position + 1) === lineFeed;
}

/** Returns the digit. For any other character, returns NaN, which makes every later comparison false. */
function digitAt(text: string, position: number): number {
  const digit = text.charCodeAt(position) - 0x30;
  return digit >= 0 && digit <= 9 ? digit : Number.NaN;
}

function malformedRequestLine(): HeadError {
  return new HeadError(400, "The request line must be: method, one space, path, one space, HTTP/1.1.");
}

function malformedStatusLine(): HeadError {
  return new HeadError(400, "The status line must be: HTTP/1.1, one space, a status from 100 to 599.");
}

function malformedName(text: string, start: number, end: number): HeadError {
  if (isBlank(text.charCodeAt(start))) return new HeadError(400, "A header must not be folded over two lines.");
  const name = text.slice(start, end);
  return new HeadError(400, name ? `The header ${name} must be followed by a colon.` : "A header has no valid name.");
}
