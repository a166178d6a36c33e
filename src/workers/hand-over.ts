// Hands requests over to the primary process through a private Unix socket. Clients cannot distinguish its answers from
// the worker's own.
import type { ByteSpan } from "../base/bytes/byte-span.ts";
import { Http1Client } from "../http1/client/client.ts";
import type { PassableRequest, Reply } from "../http1/message.ts";
import { HandedRequest, type UnreachableAnswer } from "./handed-request.ts";

export interface HandOverOptions {
  /** The path of the primary process's socket (`UnixPlace`). */
  socketPath: string;
  /**
   * Maximum concurrent requests and upgraded connections at the primary process. The same number may wait until one of
   * them ends.
   */
  maxConnections: number;
  /**
   * Returns the answer for the client if the primary process cannot be reached, or ended before it answered. The answer
   * says when to retry.
   */
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
   * Lets the primary process answer `request` through `reply`, of which nothing was sent yet. `body` is the whole body
   * without its content coding, if the worker has read it. Never throws.
   */
  pass(request: PassableRequest, reply: Reply, body?: ByteSpan): void {
    new HandedRequest(this.#client, request, reply, body, this.#options.unreachable).send();
  }

  /** Returns the number of connections to the primary process, including those kept for the next request. */
  get connections(): number {
    return this.#client.counts.connections;
  }

  /** Breaks off all running requests. */
  close(): void {
    this.#client.close();
  }
}
