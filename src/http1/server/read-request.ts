// Parses the headers of a request, including how its body ends and whether the connection can be reused.
import { keepsAlive, requestFraming } from "../framing.ts";
import { HeadError, parseRequestHead, type RequestHead } from "../head.ts";
import type { ReadHead } from "./known-head.ts";

export class ReadRequest implements ReadHead<ReadRequest> {
  readonly head: RequestHead;
  /** The length of the body in bytes. -1 if the body is chunked, 0 if there is none. */
  readonly bodyLength: number;
  readonly keepsAlive: boolean;
  /** True if the client waits for 100 Continue before it sends the body. */
  readonly expectsContinue: boolean;

  constructor(head: RequestHead, bodyLength: number, keepsAlive: boolean, expectsContinue: boolean) {
    this.head = head;
    this.bodyLength = bodyLength;
    this.keepsAlive = keepsAlive;
    this.expectsContinue = expectsContinue;
  }

  kept(): void {
    this.head.headers.keepValues();
  }

  withLength(bodyLength: number, digits: string): ReadRequest {
    const { method, target, version, headers } = this.head;
    const head = { method, target, version, headers: headers.withLength(digits) };
    return new ReadRequest(head, bodyLength, this.keepsAlive, this.expectsContinue);
  }
}

/** Parses the headers of a request. `text` has one character per byte (latin1). Throws a HeadError. */
export function readRequest(text: string): ReadRequest {
  const head = parseRequestHead(text);
  const framing = requestFraming(head);
  const bodyLength = framing.kind === "length" ? framing.length : framing.kind === "none" ? 0 : -1;
  return new ReadRequest(head, bodyLength, keepsAlive(head), readExpectation(head));
}

/** Reports whether the client waits for 100 Continue. Throws a HeadError (417) for any other expectation. */
function readExpectation(head: RequestHead): boolean {
  const expectation = head.headers.get("expect");
  // HTTP/1.0 clients may send an expectation too, but it is ignored (RFC 9110, 10.1.1).
  if (expectation === null || head.version === "1.0") return false;
  if (expectation.toLowerCase() === "100-continue") return true;
  throw new HeadError(417, "The only expectation that is met here is 100-continue.");
}
