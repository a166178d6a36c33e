// Writes the heads of answers byte by byte into one reused buffer, and refuses values that would split them.

import { putDigits } from "../../base/bytes/put-digits.ts";
import { wallMs } from "../../base/clock.ts";
import type { AnswerFields } from "../message.ts";
import { gatheredBytes } from "./turn-output.ts";

/**
 * A buffer for a head and perhaps a small body. The head stays for the next answer to reuse, so nothing else may be
 * written over it.
 */
export const scratch = Buffer.allocUnsafeSlow(64 * 1024);

/**
 * Reports whether the bytes will soon be overwritten. If so, bytes that the kernel does not take must be copied before
 * any other code runs.
 */
export function isReused(bytes: Buffer): boolean {
  return bytes === scratch || bytes === gatheredBytes;
}

/**
 * The framing of an answer. A number is the length; `none`: no body follows and no length is sent; `close`: the end of
 * the connection is the end of the body.
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

/** The most bytes of a numeric field value. */
const maxOfNumber = 32;
const upgradeLine = "HTTP/1.1 101 Switching Protocols\r\n";

/** The status lines used so far. */
const statusLines = new Map<number, string>();
/** Prefixes of field lines by name: `name: `, or empty if the server sets the field itself. */
const namePrefixes = new Map<string, string>();
/**
 * The most cached prefixes. Field names are constants of the program, but the cache must not grow if one ever comes
 * from outside.
 */
const maxNamePrefixes = 256;
const ownFields = new Set(["connection", "content-length", "date", "keep-alive", "transfer-encoding"]);

let dateSecond = 0;
let dateLine = "";
let lastLength = -1;
let lengthLine = "";

/**
 * The lines at the beginning of `scratch`: consecutive heads share most lines, which are then not written again. A line
 * of the server's own has an empty name.
 */
const keptNames: string[] = [];
const keptValues: (string | number)[] = [];
/** The offset after each line. */
const keptEnds: number[] = [];
/** The number of lines that are still in place. */
let kept = 0;

/**
 * Writes a head at the start of `scratch` and returns its end. Throws a RangeError for a status that is not final or
 * fields that are too long together, and a TypeError for an invalid name or value. Ignores framing fields, `date` and
 * `connection` in `fields`. With `upgrade` the status is 101.
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
  // A body may overwrite the lines after this one.
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
  // The name is already in place if the previous line ends at the same offset as before.
  const hasName = line < before && keptNames[line] === name;
  const start = hasName ? at + prefix.length : putText(prefix, at);
  const end = typeof value === "number" ? putNumber(value, start) : putValue(name, value, start);
  keep(line, name, value, end, before);
  return end;
}

/** `before` is the number of lines that were in place before. */
function keep(line: number, name: string, value: string | number, end: number, before: number): void {
  // The following lines are still in place if this one ends at the same offset as before.
  kept = line < before && keptEnds[line] === end ? before : line + 1;
  keptNames[line] = name;
  keptValues[line] = value;
  keptEnds[line] = end;
}

/** Writes text in a loop, which is several times cheaper here than joining the pieces first. */
function putText(text: string, at: number): number {
  const { length } = text;
  if (at + length > scratch.length) throw tooLong();
  for (let index = 0; index < length; index++) scratch[at + index] = text.charCodeAt(index);
  return at + length;
}

/**
 * Refuses characters beyond one byte and control characters: a line break, or a character that becomes one when cut to
 * a byte, would start a field.
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
