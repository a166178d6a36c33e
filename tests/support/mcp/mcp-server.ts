// An MCP server on a real socket, in each revision of the protocol: with sessions before 2026-07-28, without them since.
import {
  type AuthInfo,
  createMcpHandler,
  type EventStore,
  hostHeaderValidationResponse,
  isLegacyRequest,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  McpServer,
  originValidationResponse,
  type Server,
  type ServerNotifier,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";

/** What a server tells all who listen to it, in whatever revision. */
export interface Notifier {
  toolsChanged(): void;
  promptsChanged(): void;
  resourceUpdated(uri: string): void;
}

export interface McpFixtureOptions {
  /** Which revisions it speaks; both, where it is left out. */
  eras?: "legacy" | "modern" | undefined;
  /** Answers what is asked of its origin beside the endpoint. */
  elsewhere?(request: Request): Promise<Response | undefined>;
  /** Sees each request first; what it answers is the answer, and who asks is told to the tools. */
  admit?(request: Request): AuthInfo | Response | undefined;
}

export interface McpFixture {
  /** The address of its endpoint. */
  url: string;
  origin: string;
  /** Headers of each request to the endpoint, as they came. */
  requests: { method: string; headers: Headers; body: string }[];
  notifier: Notifier;
  /** Ids of the sessions that are open. */
  sessions(): string[];
  [Symbol.asyncDispose](): Promise<void>;
}

interface Session {
  server: McpServer | Server;
  transport: WebStandardStreamableHTTPServerTransport;
}

const path = "/mcp";

/** `make`: one for each session, or for each request where there are none. */
export function startMcpServer(
  make: (notifier: Notifier) => McpServer | Server,
  options: McpFixtureOptions = {},
): McpFixture {
  const sessions = new Map<string, Session>();
  const requests: McpFixture["requests"] = [];
  const modern = createMcpHandler(() => make(notifier), {
    legacy: "reject",
    onerror: () => {},
  });
  const notifier = notifierOf(modern.notify, sessions);
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const refused =
        hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
        originValidationResponse(request, localhostAllowedOrigins());
      if (refused !== undefined) return refused;
      if (new URL(request.url).pathname !== path) {
        return (await options.elsewhere?.(request)) ?? new Response(null, { status: 404 });
      }
      const body = request.method === "POST" ? await request.clone().text() : "";
      requests.push({ method: request.method, headers: new Headers(request.headers), body });
      const admitted = options.admit?.(request);
      if (admitted instanceof Response) return admitted;
      const auth = admitted === undefined ? {} : { authInfo: admitted };
      if (options.eras === "modern") return await modern.fetch(request, auth);
      if (options.eras !== "legacy" && !(await isLegacyRequest(request))) return await modern.fetch(request, auth);
      return await ofSession(request, auth, sessions, () => make(notifier));
    },
  });
  const origin = `http://127.0.0.1:${server.port}`;
  return {
    ...{ url: origin + path, origin, requests, notifier },
    sessions: () => [...sessions.keys()],
    async [Symbol.asyncDispose]() {
      await modern.close();
      for (const { transport } of sessions.values()) await transport.close();
      await server.stop(true);
    },
  };
}

async function ofSession(
  request: Request,
  auth: { authInfo?: AuthInfo },
  sessions: Map<string, Session>,
  make: () => McpServer | Server,
): Promise<Response> {
  const id = request.headers.get("mcp-session-id");
  if (id !== null) {
    const known = sessions.get(id);
    return known === undefined
      ? refusal(404, -32001, "Session not found")
      : await known.transport.handleRequest(request, auth);
  }
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: () => crypto.randomUUID(),
    eventStore: memoryOfEvents(),
    retryInterval: 200,
    onsessioninitialized: (made) => void sessions.set(made, { server, transport }),
  });
  transport.onclose = () => void sessions.delete(transport.sessionId ?? "");
  const server = make();
  await server.connect(transport);
  return await transport.handleRequest(request, auth);
}

function refusal(status: number, code: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status });
}

function notifierOf(bus: ServerNotifier, sessions: ReadonlyMap<string, Session>): Notifier {
  const toSessions = (method: string, params: Record<string, unknown> = {}) => {
    for (const { server } of sessions.values()) {
      const teller = server instanceof McpServer ? server.server : server;
      void teller.notification({ method, params }).catch(() => {});
    }
  };
  return {
    toolsChanged() {
      bus.toolsChanged();
      toSessions("notifications/tools/list_changed");
    },
    promptsChanged() {
      bus.promptsChanged();
      toSessions("notifications/prompts/list_changed");
    },
    resourceUpdated(uri) {
      bus.resourceUpdated(uri);
      toSessions("notifications/resources/updated", { uri });
    },
  };
}

/** Keeps what one session sent, in order, so that a stream that ended goes on where it was. */
function memoryOfEvents(): EventStore {
  const events: { id: string; stream: string; message: Parameters<EventStore["storeEvent"]>[1] }[] = [];
  return {
    async storeEvent(stream, message) {
      const id = `${stream}:${events.length}`;
      events.push({ id, stream, message });
      return id;
    },
    async getStreamIdForEventId(id) {
      return events.find((event) => event.id === id)?.stream;
    },
    async replayEventsAfter(last, { send }) {
      const at = events.findIndex(({ id }) => id === last);
      const stream = events[at]?.stream ?? "";
      for (const event of events.slice(at + 1)) if (event.stream === stream) await send(event.id, event.message);
      return stream;
    },
  };
}
