// Hands requests over to the primary: it answers them over a private Unix socket, and clients cannot tell that from the worker's own answer.
import type { ByteSpan } from "../base/bytes/byte-span.ts";
import { Http1Client } from "../http1/client/client.ts";
import type { PassableRequest, Reply } from "../http1/message.ts";
import { HandedRequest, type UnreachableAnswer } from "./handed-request.ts";

export interface HandOverOptions {
  /** Where the primary listens (`UnixPlace`). */
  socketPath: string;
  /** Requests and upgraded connections with the primary at once; as many again wait for one of these to end. */
  maxConnections: number;
  /** The answer where the primary cannot be reached, or is gone before it answered; it tells when to try again. */
  unreachable(request: PassableRequest): UnreachableAnswer;
}

export class HandOver {
  readonly #client: Http1Client;
  readonly #options: HandOverOptions;

  constructor(options: HandOverOptions) {
    const { socketPath, maxConnections } = options;
    this.#options = options;
    this.#client = new Http1Client(
      { hostname: "primary", port: 80, unix: socketPath },
      { maxConnections, maxWaiting: maxConnections },
    );
  }

  /**
   * Has the primary answer `request` by `reply`, of which nothing was sent yet. `body`: the whole body without its content
   * coding, if the worker has read it. Never throws.
   */
  pass(request: PassableRequest, reply: Reply, body?: ByteSpan): void {
    new HandedRequest(this.#client, request, reply, body, this.#options.unreachable).send();
  }

  /** Connections to the primary, those that are kept for the next request included. */
  get connections(): number {
    return this.#client.counts.connections;
  }

  /** Breaks off what is under way. */
  close(): void {
    this.#client.close();
  }
}
