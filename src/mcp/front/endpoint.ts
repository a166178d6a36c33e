// The endpoint of the protocol: what a client sends goes the way of its revision, by sessions or one request at a time.
import { AsyncLocalStorage } from "node:async_hooks";
import {
  createMcpHandler,
  InMemoryServerEventBus,
  isLegacyRequest,
  type McpHttpHandler,
  type ServerEventBus,
} from "@modelcontextprotocol/server";
import type { Clock } from "../../base/clock.ts";
import type { ClientRequest } from "./client-call.ts";
import type { Desk } from "./desk.ts";
import { protocolServer } from "./protocol-server.ts";
import { rpcFault, Sessions } from "./sessions.ts";

export class Endpoint {
  readonly #sessions: Sessions;
  readonly #modern: McpHttpHandler;
  /** Who is asked for at the moment: the package asks for a server, and for its events, within the request. */
  readonly #at = new AsyncLocalStorage<ClientRequest>();
  #isClosed = false;

  constructor(desk: Desk, clock: Pick<Clock, "monotonicMs">) {
    this.#sessions = new Sessions(desk, clock);
    const current = () => {
      const request = this.#at.getStore();
      if (!request) throw new Error("A request came by no way that is known.");
      return request;
    };
    const bus: ServerEventBus = new InMemoryServerEventBus();
    this.#modern = createMcpHandler(
      () => {
        const request = current();
        return protocolServer(desk, false, () => request);
      },
      { legacy: "reject", bus },
    );
  }

  /** Sessions that are open, for metrics. */
  get sessions(): number {
    return this.#sessions.size;
  }

  /** `body`: of a POST, parsed; undefined for others. */
  async answer(request: Request, from: ClientRequest, body: unknown): Promise<Response> {
    if (this.#isClosed) return rpcFault(503, -32_000, "The gateway is about to stop.", body);
    if (Array.isArray(body))
      return rpcFault(400, -32_600, "Send one message at a time: batches are no part of the protocol any more.", null);
    const isLegacy = await isLegacyRequest(request, body);
    if (isLegacy) return await this.#sessions.answer(request, from, body);
    return await this.#at.run(from, () => this.#modern.fetch(request, { parsedBody: body }));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#sessions.close();
    await this.#modern.close();
  }
}
