// Types for handing a request to another process, if this process handles only some requests.
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { PassableRequest, Reply } from "../../http1/message.ts";

/**
 * Thrown to hand the request to another process, before anything was answered or counted. `body` is the decompressed
 * body, if it was read.
 */
export class HandedOver {
  readonly body: ByteSpan | undefined;

  constructor(body?: ByteSpan) {
    this.body = body;
  }
}

/** The process that handles the requests which this process does not. */
export interface Elsewhere {
  /** Forwards the request to that process, and its answer to the client. */
  pass(req: PassableRequest, reply: Reply, body?: ByteSpan): void;
}
