// Interprets the head of a request: the request, its body, and whether another may follow.
import { keepsAlive, requestFraming } from "../framing.ts";
import { HeadError, parseRequestHead, type RequestHead } from "../head.ts";
import type { ReadHead } from "./known-head.ts";

export class ReadRequest implements ReadHead<ReadRequest> {
  readonly head: RequestHead;
  /** The length of the body; -1 for chunks, 0 without a body. */
  readonly bodyLength: number;
  readonly keepsAlive: boolean;
  /** Whether the client waits for permission to send the body. */
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

/** Reads a head; `text` is as for `parseRequestHead`. Throws a HeadError. */
export function readRequest(text: string): ReadRequest {
  const head = parseRequestHead(text);
  const framing = requestFraming(head);
  const bodyLength = framing.kind === "length" ? framing.length : framing.kind === "none" ? 0 : -1;
  return new ReadRequest(head, bodyLength, keepsAlive(head), readExpectation(head));
}

/** Reports whether the client waits for 100 Continue. Throws a HeadError (417). */
function readExpectation(head: RequestHead): boolean {
  const expectation = head.headers.get("expect");
  // HTTP/1.0 has no expectations, so its clients never wait (RFC 9110, 10.1.1).
  if (expectation === null || head.version === "1.0") return false;
  if (expectation.toLowerCase() === "100-continue") return true;
  throw new HeadError(417, "The only expectation that is met here is 100-continue.");
}
