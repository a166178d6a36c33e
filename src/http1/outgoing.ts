// Puts the heads of answers together, byte by byte in one reused buffer, and refuses what would split them.
import type { HeaderFields } from "./message.ts";

/**
 * Heads and small bodies are put together here. Whoever hands it to a socket copies what the kernel did not take before
 * anything else runs.
 */
export const scratch = Buffer.allocUnsafeSlow(64 * 1024);

/** `none`: no body follows and no length is told; `close`: the end of the connection is the end of the body. */
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

const connectionLines: Readonly<Record<AnswerConnection, string>> = {
  keep: "",
  "keep_1.0": "connection: keep-alive\r\n",
  close: "connection: close\r\n",
  upgrade: "connection: upgrade\r\n",
};

const upgradeLine = "HTTP/1.1 101 Switching Protocols\r\n";

/** For each status that was used: its line. */
const statusLines = new Map<number, string>();
/** For each name that was used: `name: `, or nothing where the field is the server's own. */
const namePrefixes = new Map<string, string>();
/** Names are the program's own and few; the cache must not grow should one ever come from outside. */
const maxNamePrefixes = 256;
const ownFields = new Set(["connection", "content-length", "date", "keep-alive", "transfer-encoding"]);

let dateSecond = 0;
let dateField = "";

/**
 * Puts a head at the start of `scratch` and returns where it ends. Throws a RangeError for a status that is no final one
 * or fields that are too long together, a TypeError for a name or value that must not be sent. Framing fields, `date`
 * and `connection` among `fields` are left out. With `upgrade` the status is 101.
 */
export function putHead(
  status: number,
  fields: HeaderFields,
  framing: AnswerFraming,
  connection: AnswerConnection,
): number {
  const line = connection === "upgrade" ? upgradeLine : (statusLines.get(status) ?? addStatusLine(status));
  let at = putText(line, 0);
  for (const name in fields) {
    const prefix = namePrefixes.get(name) ?? addNamePrefix(name);
    if (prefix === "") continue;
    at = putText(prefix, at);
    at = putValue(name, fields[name] as string, at);
  }
  at = putText(currentDateField(), at);
  if (framing === "chunked") at = putText("transfer-encoding: chunked\r\n", at);
  else if (typeof framing === "number") at = putText(`content-length: ${framing}\r\n`, at);
  return putText(connection === "keep" ? "\r\n" : `${connectionLines[connection]}\r\n`, at);
}

/** A loop is several times cheaper here than to join the pieces and write the whole. */
function putText(text: string, at: number): number {
  const { length } = text;
  if (at + length > scratch.length) throw tooLong();
  for (let index = 0; index < length; index++) scratch[at + index] = text.charCodeAt(index);
  return at + length;
}

/** Only what is one byte and no control character: a line break, or what becomes one when cut to a byte, starts a field. */
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
  scratch[at + length] = 0x0d;
  scratch[at + length + 1] = 0x0a;
  return at + length + 2;
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

function currentDateField(): string {
  const now = Date.now();
  const second = Math.floor(now / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    dateField = `date: ${new Date(now).toUTCString()}\r\n`;
  }
  return dateField;
}

function tooLong(): RangeError {
  return new RangeError(`The head of an answer must be at most ${scratch.length} bytes.`);
}
