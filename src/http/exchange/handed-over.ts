// Signals that another process must answer a request, from a process that serves only some.
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { PassableRequest, Reply } from "../../http1/message.ts";

/**
 * Thrown before anything is answered or counted. `body` is the whole body without its content coding, if it was read.
 */
export class HandedOver {
  readonly body: ByteSpan | undefined;

  constructor(body?: ByteSpan) {
    this.body = body;
  }
}

/** The process that answers everything. */
export interface Elsewhere {
  /** Forwards the request to that process, and sends its answer. */
  pass(req: PassableRequest, reply: Reply, body?: ByteSpan): void;
}
