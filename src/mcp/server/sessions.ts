// Sessions of MCP clients with earlier protocol revisions. Each belongs to one principal; idle sessions are ended.
import { type ServerContext, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import type { Clock } from "../../base/clock.ts";
import { longLived } from "../../base/long-lived.ts";
import { type ClientRequest, ownerOf } from "./client-call.ts";
import { KeptEvents } from "./kept-events.ts";
import { protocolServer } from "./protocol-server.ts";
import type { RequestHandler } from "./request-handler.ts";
import type { SessionRevoker } from "./session-revoker.ts";
import { Subscriber } from "./subscriptions.ts";

/** Milliseconds after which an idle session is ended, and the maximum numbers of sessions. */
const { idleMs, bounds } = longLived.mcpSession;
const sweepMs = 30_000;
const [maxOfOwner, maxOfAll] = [bounds.key.most, bounds.total.most];
/** Maximum concurrent requests of one session. */
const maxOpen = 64;

interface Session {
  readonly id: string;
  readonly owner: string;
  readonly accountId: string;
  readonly only: string | undefined;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly subscriber: Subscriber;
  readonly events: KeptEvents;
  /**
   * Ids of running requests. A second request with the same id is refused, because responses could not be told apart.
   */
  readonly open: Set<string>;
  /** Number of running requests and open streams in the session. */
  busy: number;
  usedMs: number;
}

export class Sessions {
  readonly #handler: RequestHandler;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #revoker: Pick<SessionRevoker, "add">;
  readonly #byId = new Map<string, Session>();
  readonly #requests = new WeakMap<Request, ClientRequest>();
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(handler: RequestHandler, clock: Pick<Clock, "monotonicMs">, revoker: Pick<SessionRevoker, "add">) {
    this.#handler = handler;
    this.#clock = clock;
    this.#revoker = revoker;
    this.#timer = setInterval(() => this.#sweep(), sweepMs);
    this.#timer.unref();
  }

  get size(): number {
    return this.#byId.size;
  }

  /** Handles an HTTP request. `body` is the parsed JSON of a POST, else undefined. */
  async answer(request: Request, from: ClientRequest, body: unknown): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    if (id === null) return await this.#begin(request, from, body);
    const session = this.#byId.get(id);
    // A session of another owner gets the same error as a missing one.
    if (!session || session.owner !== ownerOf(from.principal) || session.only !== from.only) {
      return rpcFault(404, -32_001, "There is no such session. Begin a new one with initialize.", body);
    }
    this.#requests.set(request, { ...from, subscriber: session.subscriber });
    return await this.#within(session, request, body);
  }

  /** Ends all sessions. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    const all = [...this.#byId.values()];
    this.#byId.clear();
    // Ignore errors: the client may already have disconnected.
    await Promise.all(all.map(({ transport }) => transport.close().catch(() => {})));
  }

  async #begin(request: Request, from: ClientRequest, body: unknown): Promise<Response> {
    if (request.method === "GET")
      return rpcFault(405, -32_000, "A stream belongs to a session: begin one with initialize.", body);
    if (!isInitialize(body))
      return rpcFault(400, -32_000, "Begin a session with initialize, and send its Mcp-Session-Id.", body);
    const introduction = await this.#handler.introduction(from, true);
    let begun: Session | undefined;
    let forget = () => {};
    const events = new KeptEvents(from.memoryAccount, this.#clock);
    const subscriber = new Subscriber(from, this.#handler.onChange, (method, params) => {
      // Ignore the error: if the client has no open stream, the notification is dropped.
      void server.notification({ method, params: { ...params } }).catch(() => {});
    });
    this.#requests.set(request, { ...from, subscriber });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      eventStore: events,
      onsessioninitialized: (id) => {
        const { principal, only } = from;
        const session: Session = {
          ...{ id, owner: ownerOf(principal), accountId: principal.account.id, only },
          ...{ transport, subscriber, events, open: new Set(), busy: 0, usedMs: this.#clock.monotonicMs() },
        };
        begun = session;
        // Enforce the limit only now, because other sessions of the owner may have begun meanwhile.
        this.#makeRoom(session);
        this.#byId.set(id, session);
        // The session may outlive its access token, because a renewed token continues it.
        forget = this.#revoker.add(from.principal, undefined, () => this.#end(session));
      },
    });
    transport.onclose = () => {
      if (begun) this.#byId.delete(begun.id);
      forget();
      subscriber.end();
      events.end();
    };
    const server = protocolServer(this.#handler, true, introduction, (context) => this.#requestOf(context));
    await server.connect(transport);
    const answer = await transport.handleRequest(request, { parsedBody: body });
    if (!begun) await transport.close();
    return answer;
  }

  async #within(session: Session, request: Request, body: unknown): Promise<Response> {
    const ids = idsOf(body);
    if (session.open.size + ids.length > maxOpen) {
      return rpcFault(429, -32_000, `At most ${maxOpen} requests of a session at a time.`, body);
    }
    if (ids.some((id) => session.open.has(id)) || new Set(ids).size !== ids.length) {
      return rpcFault(400, -32_600, "A request with the same id is under way in this session.", body);
    }
    for (const id of ids) session.open.add(id);
    session.busy++;
    let isOver = false;
    const over = () => {
      if (isOver) return;
      isOver = true;
      for (const id of ids) session.open.delete(id);
      session.busy--;
      session.usedMs = this.#clock.monotonicMs();
    };
    try {
      const answer = await session.transport.handleRequest(request, { parsedBody: body });
      return answer.body ? new Response(whenOver(answer.body, over), answer) : done(answer, over);
    } catch (error) {
      over();
      throw error;
    }
  }

  #requestOf({ http }: ServerContext): ClientRequest {
    const request = http?.req && this.#requests.get(http.req);
    if (!request) throw new Error("A request of a session came by no way that is known.");
    return request;
  }

  /**
   * Ends a session if there are too many: a session of the same owner, or else of the account that has the most
   * sessions. Idle sessions are ended first, then the least recently used.
   */
  #makeRoom({ owner }: Session): void {
    const all = [...this.#byId.values()];
    const own = all.filter((session) => session.owner === owner);
    const among = own.length >= maxOfOwner ? own : all.length >= maxOfAll ? ofLargestAccount(all) : [];
    const [oldest] = among.sort((a, b) => Number(a.busy > 0) - Number(b.busy > 0) || a.usedMs - b.usedMs);
    if (oldest) this.#end(oldest);
  }

  #sweep(): void {
    const before = this.#clock.monotonicMs() - idleMs;
    for (const session of this.#byId.values()) {
      session.events.expire();
      if (session.busy === 0 && session.usedMs < before) this.#end(session);
    }
  }

  #end(session: Session): void {
    this.#byId.delete(session.id);
    // Ignore the error: the client may already have disconnected.
    session.transport.close().catch(() => {});
  }
}

function ofLargestAccount(all: readonly Session[]): Session[] {
  const byAccount = Map.groupBy(all, ({ accountId }) => accountId);
  const most = Math.max(...[...byAccount.values()].map(({ length }) => length));
  return [...byAccount.values()].filter(({ length }) => length === most).flat();
}

function isInitialize(body: unknown): boolean {
  return typeof body === "object" && body !== null && "method" in body && body.method === "initialize";
}

/** Returns the ids of the requests in a body. Responses and notifications have none. */
function idsOf(body: unknown): string[] {
  const messages: unknown[] = Array.isArray(body) ? body : [body];
  return messages.flatMap((message) =>
    typeof message === "object" && message !== null && "method" in message && "id" in message
      ? [JSON.stringify(message.id)]
      : [],
  );
}

export function rpcFault(status: number, code: number, message: string, body: unknown): Response {
  const id = typeof body === "object" && body !== null && "id" in body ? body.id : null;
  return Response.json({ jsonrpc: "2.0", id, error: { code, message } }, { status });
}

function done(answer: Response, over: () => void): Response {
  over();
  return answer;
}

/** Returns the stream, and calls `over` once when it has ended or was cancelled. */
export function whenOver(body: ReadableStream<Uint8Array>, over: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { value, done: isDone } = await reader.read();
        if (isDone) {
          over();
          controller.close();
        } else controller.enqueue(value);
      } catch (error) {
        over();
        controller.error(error);
      }
    },
    async cancel(reason) {
      over();
      await reader.cancel(reason);
    },
  });
}
