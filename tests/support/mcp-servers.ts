// Real MCP servers for tests, by the protocol's own package: over HTTP in both eras, with what they were asked on record.
import {
  createMcpHandler,
  isLegacyRequest,
  Server,
  type ServerContext,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import type { McpServer } from "../../src/domain/tools/mcp-server.ts";

type Params = Record<string, unknown>;
export type ToolWork = (params: Params, context: ServerContext, server: Server) => Promise<Params>;

export interface McpServerOptions {
  /** Sessions, as revisions before 2026-07-28 have them; left out: none. */
  isLegacy?: boolean;
  /** What `tools/call` does, by the name of the tool. */
  tools?: Record<string, ToolWork>;
  /** Answers instead of the protocol where it gives something. */
  before?(request: Request): Response | undefined | Promise<Response | undefined>;
}

export class HttpMcpServer implements AsyncDisposable {
  /** Each message that came, with the fields of its request. */
  readonly requests: { method: string; body: Params; headers: Headers }[] = [];
  readonly sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  readonly modern: ReturnType<typeof createMcpHandler>;
  readonly #options: McpServerOptions;
  readonly #http: Bun.Server<undefined>;

  constructor(options: McpServerOptions = {}) {
    this.#options = options;
    this.modern = createMcpHandler(() => this.#server(), { legacy: "reject" });
    const fetch = (request: Request) => this.#fetch(request);
    this.#http = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#http.port}/mcp`;
  }

  /** How often a method of the protocol was asked. */
  count(method: string): number {
    return this.requests.filter(({ body }) => body["method"] === method).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#http.stop(true);
  }

  async #fetch(request: Request): Promise<Response> {
    const body = request.method === "POST" ? ((await request.clone().json()) as Params) : {};
    this.requests.push({ method: request.method, body, headers: request.headers });
    const instead = await this.#options.before?.(request);
    if (instead) return instead;
    const isLegacy = await isLegacyRequest(request);
    if (!this.#options.isLegacy) return this.modern.fetch(request);
    if (!isLegacy) return new Response("unknown method", { status: 400 });
    const id = request.headers.get("mcp-session-id");
    if (id !== null)
      return (await this.sessions.get(id)?.handleRequest(request)) ?? new Response(null, { status: 404 });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (session) => void this.sessions.set(session, transport),
      onsessionclosed: (session) => void this.sessions.delete(session),
    });
    await this.#server().connect(transport);
    return transport.handleRequest(request);
  }

  #server(): Server {
    return mcpServer(this.#options.tools ?? {});
  }
}

/** One that answers `tools/call` by what is given, and lists the names of it. */
export function mcpServer(tools: Record<string, ToolWork>): Server {
  const capabilities = { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, logging: {} };
  const server = new Server({ name: "fixture", version: "1" }, { capabilities, instructions: "Ask away." });
  server.fallbackRequestHandler = async (request, context) => {
    const params: Params = request.params ?? {};
    if (request.method === "tools/list") {
      return { tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: "object" }, "x-unknown": [1] })) };
    }
    if (request.method === "resources/list") return { resources: [] };
    if (request.method === "resources/subscribe") return {};
    const work = tools[String(params["name"])];
    if (request.method !== "tools/call" || !work)
      throw { code: -32_602, message: "Unknown tool", data: { seen: true } };
    return await work(params, context, server);
  };
  return server;
}

export function textResult(text: string): Params {
  return { content: [{ type: "text", text }] };
}

/** A server as the configuration names it. */
export function mcpServerAt(place: string | readonly [string, ...string[]], own: Partial<McpServer> = {}): McpServer {
  return {
    name: "files",
    title: null,
    description: null,
    place:
      typeof place === "string"
        ? { kind: "http", url: place }
        : { kind: "command", command: place, env: {}, directory: null },
    credentials: { kind: "none" },
    environments: null,
    accounts: null,
    tools: null,
    approval: "all",
    sharing: "person",
    timeoutMs: 5_000,
    maxResultBytes: 100_000,
    maxConcurrency: 10,
    nanoUsdPerCall: null,
    local: false,
    enabled: true,
    isDeclared: true,
    ...own,
  };
}
