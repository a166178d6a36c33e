// Determines where a message's body ends, and whether the connection can be reused. Ambiguous messages are refused (RFC
// 9112, 6 and 9.3).
import { HeadError, type RequestHead, type ResponseHead } from "./head.ts";

export type RequestFraming = { kind: "none" } | { kind: "length"; length: number } | { kind: "chunked" };
/** The end of a response's body. `close` means that the body ends with the connection. */
export type ResponseFraming = RequestFraming | { kind: "close" };

const none = { kind: "none" } as const;
const chunked = { kind: "chunked" } as const;
const close = { kind: "close" } as const;

/** The last valid Host header. Nearly all requests have the same, so it need not be checked again. */
let lastHost = "";

/**
 * Returns how the request's body ends. Throws a HeadError (400) if that is ambiguous, or if there is not exactly one
 * `Host` header.
 */
export function requestFraming(head: RequestHead): RequestFraming {
  checkHost(head);
  return declaredFraming(head) ?? none;
}

/**
 * Returns how the response's body ends. Throws a HeadError if that is ambiguous. `method` is the method of the request.
 */
export function responseFraming(head: ResponseHead, method: string): ResponseFraming {
  const declared = declaredFraming(head);
  const { status } = head;
  if (method === "HEAD" || status === 204 || status === 304 || status < 200) return none;
  return declared ?? close;
}

/** Reports whether the connection can be reused after the message (RFC 9112, 9.3). */
export function keepsAlive(head: RequestHead | ResponseHead): boolean {
  const connection = head.headers.get("connection");
  if (connection === null) return head.version === "1.1";
  if (connection === "keep-alive") return true;
  const options = connection.toLowerCase().split(",");
  if (options.some((option) => option.trim() === "close")) return false;
  return head.version === "1.1" || options.some((option) => option.trim() === "keep-alive");
}

function declaredFraming(head: RequestHead | ResponseHead): RequestFraming | undefined {
  const encoding = head.headers.get("transfer-encoding");
  const length = head.headers.get("content-length");
  if (encoding === null) {
    if (length === null) return undefined;
    const value = readLength(length);
    return value === 0 ? none : { kind: "length", length: value };
  }
  if (length !== null) {
    throw new HeadError(400, "Content-Length and Transfer-Encoding must not be used together.");
  }
  if (head.version === "1.0") throw new HeadError(400, "Transfer-Encoding needs HTTP/1.1.");
  // Repeated headers are joined to a list, which is refused here too.
  if (encoding !== "chunked" && encoding.toLowerCase() !== "chunked") {
    throw new HeadError(400, "Transfer-Encoding must be chunked, once.");
  }
  return chunked;
}

/** Parses a Content-Length. Repeated headers are joined to a list, which is refused even if the values are equal. */
function readLength(text: string): number {
  let length = text === "" || text.length > 16 ? Number.NaN : 0;
  for (let index = 0; index < text.length; index++) {
    const digit = text.charCodeAt(index) - 0x30;
    length = digit >= 0 && digit <= 9 ? length * 10 + digit : Number.NaN;
  }
  if (Number.isSafeInteger(length)) return length;
  throw new HeadError(400, "Content-Length must be one whole number of at most 9007199254740991, given once.");
}

function checkHost(head: RequestHead): void {
  const host = head.headers.get("host");
  if (host === null) {
    if (head.version === "1.1") throw new HeadError(400, "The header Host is missing.");
    return;
  }
  // Repeated Host headers are joined with a comma, which a host name cannot contain.
  if (host !== lastHost && !/^[\w.~%!$&'()*+;=[\]:-]*$/.test(host)) {
    throw new HeadError(400, "The header Host must be one name or address, with a port where needed.");
  }
  lastHost = host;
}
