// Types for handing a request to another process, because this process handles only some requests.
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { PassableRequest, Reply } from "../../http1/message.ts";

/**
 * Thrown to hand the request to another process. Until then nothing may have been answered or counted. `body` is the
 * decompressed body, if it was already read.
 */
export class HandedOver {
  readonly body: ByteSpan | undefined;

  constructor(body?: ByteSpan) {
    this.body = body;
  }
}

/** The process that handles the requests which this process does not handle. */
export interface Elsewhere {
  /** Forwards the request to the other process, and that process's answer to the client. */
  pass(req: PassableRequest, reply: Reply, body?: ByteSpan): void;
}
