// Parses the headers of a response, including how its body ends and how long the connection can be reused.
import { keepsAlive, type ResponseFraming, responseFraming } from "../framing.ts";
import type { ResponseHead } from "../head.ts";
import type { ReadHead } from "../server/known-head.ts";

/** Values of `bodyLength` for a chunked body, and for a body that ends with the connection. */
export const inChunks = -1;
export const untilClosed = -2;

export class ReadResponse implements ReadHead<ReadResponse> {
  readonly head: ResponseHead;
  /** The length of the body in bytes, or one of the values above. 0 if there is no body. */
  readonly bodyLength: number;
  /** True if the connection can be reused after the body. */
  readonly keepsConnection: boolean;
  /** The server's announced keep-alive timeout in milliseconds, if any. */
  readonly announcedMs: number | undefined;

  constructor(head: ResponseHead, bodyLength: number, keepsConnection: boolean, announcedMs: number | undefined) {
    this.head = head;
    this.bodyLength = bodyLength;
    this.keepsConnection = keepsConnection;
    this.announcedMs = announcedMs;
  }

  kept(): void {
    this.head.headers.keepValues();
  }

  withLength(bodyLength: number, digits: string): ReadResponse {
    const { status, version, headers } = this.head;
    const head = { status, version, headers: headers.withLength(digits) };
    return new ReadResponse(head, bodyLength, this.keepsConnection, this.announcedMs);
  }
}

/**
 * Parses the headers of a final response (not 1xx). `method` is the method of the request. Throws a HeadError for
 * invalid headers.
 */
export function readResponse(head: ResponseHead, method: string): ReadResponse {
  const framing = responseFraming(head, method);
  const isClosed = framing.kind === "close";
  return new ReadResponse(head, bodyLengthOf(framing), !isClosed && keepsAlive(head), announcedMs(head));
}

function bodyLengthOf(framing: ResponseFraming): number {
  if (framing.kind === "length") return framing.length;
  if (framing.kind === "chunked") return inChunks;
  return framing.kind === "close" ? untilClosed : 0;
}

/** Reports whether the headers alone tell where the body ends (RFC 9112, 6.3). */
export function hasKnownEnd({ head }: ReadResponse): boolean {
  return head.status !== 204 && head.status !== 304;
}

/** Returns the timeout of a header such as `Keep-Alive: timeout=5, max=100`, in milliseconds. */
function announcedMs({ headers }: ResponseHead): number | undefined {
  const keepAlive = headers.get("keep-alive");
  const seconds = keepAlive && /(?:^|[\s,;])timeout\s*=\s*"?(\d{1,9})/i.exec(keepAlive)?.[1];
  return seconds ? Number(seconds) * 1000 : undefined;
}
