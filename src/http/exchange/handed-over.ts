// How a process that serves some requests alone says that another one has to answer this one.
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { PassableRequest, Reply } from "../../http1/message.ts";

/** Thrown before anything is answered or counted. `body`: the whole body without its content coding, if it was read. */
export class HandedOver {
  readonly body: ByteSpan | undefined;

  constructor(body?: ByteSpan) {
    this.body = body;
  }
}

/** The process that answers everything. */
export interface Elsewhere {
  /** Has the request answered there, and its answer sent from here. */
  pass(req: PassableRequest, reply: Reply, body?: ByteSpan): void;
}
