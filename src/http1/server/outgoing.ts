// Writes the headers of answers into a reused buffer. Values that could inject another header are refused.

import { putDigits } from "../../base/bytes/put-digits.ts";
import { wallMs } from "../../base/clock.ts";
import type { AnswerFields } from "../message.ts";
import { gatheredBytes } from "./turn-output.ts";

/**
 * The buffer for headers and perhaps a small body. Nothing else may be written into it, because the next answer reuses
 * its headers.
 */
export const scratch = Buffer.allocUnsafeSlow(64 * 1024);

/**
 * Reports whether the bytes are in the reused buffer, which will soon be overwritten. If so, bytes that the kernel did
 * not accept must be copied before any other code runs.
 */
export function isReused(bytes: Buffer): boolean {
  return bytes === scratch || bytes === gatheredBytes;
}

/**
 * The end of an answer's body. A number is the length, `none` means no body and no length, and `close` means that the
 * body ends with the connection.
 */
export type AnswerFraming = number | "chunked" | "close" | "none";
export type AnswerConnection = "keep" | "keep_1.0" | "close" | "upgrade";

const reasonPhrases: Readonly<Record<number, string>> = {
  200: "OK",
  201: "Created",
  202: "Accepted",
  204: "No Content",
  206: "Partial Content",
  301: "Moved Permanently",
  302: "Found",
  303: "See Other",
  304: "Not Modified",
  307: "Temporary Redirect",
  308: "Permanent Redirect",
  400: "Bad Request",
  401: "Unauthorized",
  402: "Payment Required",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  406: "Not Acceptable",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  411: "Length Required",
  412: "Precondition Failed",
  413: "Content Too Large",
  414: "URI Too Long",
  415: "Unsupported Media Type",
  417: "Expectation Failed",
  421: "Misdirected Request",
  422: "Unprocessable Content",
  423: "Locked",
  424: "Failed Dependency",
  425: "Too Early",
  426: "Upgrade Required",
  428: "Precondition Required",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
  505: "HTTP Version Not Supported",
  507: "Insufficient Storage",
};

const lastLines: Readonly<Record<AnswerConnection, string>> = {
  keep: "\r\n",
  "keep_1.0": "connection: keep-alive\r\n\r\n",
  close: "connection: close\r\n\r\n",
  upgrade: "connection: upgrade\r\n\r\n",
};

/** The most bytes of a header value that is a number. */
const maxOfNumber = 32;
const upgradeLine = "HTTP/1.1 101 Switching Protocols\r\n";

/** A cache of status lines. */
const statusLines = new Map<number, string>();
/** Cached beginnings of header lines (`name: `) by name. Empty for headers that the server sets itself. */
const namePrefixes = new Map<string, string>();
/**
 * Maximum names in the cache. Names are constants of the program, but the cache must not grow if a name comes from a
 * client.
 */
const maxNamePrefixes = 256;
const ownFields = new Set(["connection", "content-length", "date", "keep-alive", "transfer-encoding"]);

let dateSecond = 0;
let dateLine = "";
let lastLength = -1;
let lengthLine = "";

/**
 * The names of the header lines that are in `scratch`. Lines that equal those of the previous answer are not written
 * again. The server's own lines have an empty name.
 */
const keptNames: string[] = [];
const keptValues: (string | number)[] = [];
/** The offset in `scratch` at which each line ends. */
const keptEnds: number[] = [];
/** The number of lines that are still unchanged in `scratch`. */
let kept = 0;

/**
 * Writes headers at the start of `scratch` and returns their end. Throws a RangeError for an interim status or too many
 * bytes, and a TypeError for an invalid name or value. Framing headers, `date` and `connection` in `fields` are
 * ignored.
 */
export function putHead(
  status: number,
  fields: AnswerFields,
  framing: AnswerFraming,
  connection: AnswerConnection,
): number {
  let at = putOwnLine(
    0,
    connection === "upgrade" ? upgradeLine : (statusLines.get(status) ?? addStatusLine(status)),
    0,
  );
  let line = 1;
  for (const name in fields) {
    const value = fields[name];
    if (value === undefined) continue;
    if (line < kept && keptNames[line] === name && keptValues[line] === value) {
      at = keptEnds[line] as number;
      line++;
      continue;
    }
    const prefix = namePrefixes.get(name) ?? addNamePrefix(name);
    if (prefix !== "") at = putField(line++, name, prefix, value, at);
  }
  at = putOwnLine(line++, currentDateLine(), at);
  if (framing === "chunked") at = putOwnLine(line++, "transfer-encoding: chunked\r\n", at);
  else if (typeof framing === "number") at = putOwnLine(line++, currentLengthLine(framing), at);
  at = putOwnLine(line++, lastLines[connection], at);
  // A body may overwrite the lines after the last line.
  if (line < kept) kept = line;
  return at;
}

function putOwnLine(line: number, text: string, at: number): number {
  if (line < kept && keptNames[line] === "" && keptValues[line] === text) return keptEnds[line] as number;
  const before = kept;
  kept = line;
  const end = putText(text, at);
  keep(line, "", text, end, before);
  return end;
}

function putField(line: number, name: string, prefix: string, value: string | number, at: number): number {
  const before = kept;
  kept = line;
  // If the previous line ends where it ended before, the name of this line is already in the buffer.
  const hasName = line < before && keptNames[line] === name;
  const start = hasName ? at + prefix.length : putText(prefix, at);
  const end = typeof value === "number" ? putNumber(value, start) : putValue(name, value, start);
  keep(line, name, value, end, before);
  return end;
}

/** Remembers a line that was written. `before` is the number of unchanged lines before this answer. */
function keep(line: number, name: string, value: string | number, end: number, before: number): void {
  // If this line ends where the old line ended, the lines after it are still in place.
  kept = line < before && keptEnds[line] === end ? before : line + 1;
  keptNames[line] = name;
  keptValues[line] = value;
  keptEnds[line] = end;
}

/** Writes latin1 text character by character, which is several times faster here than concatenating first. */
function putText(text: string, at: number): number {
  const { length } = text;
  if (at + length > scratch.length) throw tooLong();
  for (let index = 0; index < length; index++) scratch[at + index] = text.charCodeAt(index);
  return at + length;
}

/**
 * Throws for control characters and for characters of more than one byte. A line break would begin another header, and
 * so would a character that becomes a line break when cut to one byte.
 */
function putValue(name: string, value: string, at: number): number {
  const { length } = value;
  if (at + length + 2 > scratch.length) throw tooLong();
  for (let index = 0; index < length; index++) {
    const code = value.charCodeAt(index);
    if ((code < 0x20 && code !== 0x09) || code === 0x7f || code > 0xff) {
      throw new TypeError(`The answer's header ${name} has a character that cannot be sent.`);
    }
    scratch[at + index] = code;
  }
  return putLineEnd(at + length);
}

function putNumber(value: number, at: number): number {
  if (at + maxOfNumber > scratch.length) throw tooLong();
  const isShort = value >= 0 && (value | 0) === value;
  return putLineEnd(isShort ? putDigits(scratch, value, at) : putText(String(value), at));
}

function putLineEnd(at: number): number {
  scratch[at] = 0x0d;
  scratch[at + 1] = 0x0a;
  return at + 2;
}

function addStatusLine(status: number): string {
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new RangeError(`The status of an answer must be from 200 to 599 (got ${status}).`);
  }
  const line = `HTTP/1.1 ${status} ${reasonPhrases[status] ?? ""}\r\n`;
  statusLines.set(status, line);
  return line;
}

function addNamePrefix(name: string): string {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw new TypeError("A header of the answer has no valid name.");
  const prefix = ownFields.has(name.toLowerCase()) ? "" : `${name}: `;
  if (namePrefixes.size < maxNamePrefixes) namePrefixes.set(name, prefix);
  return prefix;
}

function currentDateLine(): string {
  const now = wallMs();
  const second = Math.floor(now / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    dateLine = `date: ${new Date(now).toUTCString()}\r\n`;
  }
  return dateLine;
}

function currentLengthLine(length: number): string {
  if (length !== lastLength) {
    lastLength = length;
    lengthLine = `content-length: ${length}\r\n`;
  }
  return lengthLine;
}

function tooLong(): RangeError {
  return new RangeError(`The head of an answer must be at most ${scratch.length} bytes.`);
}
