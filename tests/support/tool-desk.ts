// MCP servers that live in the test: what they list and answer is said by it, and what they are asked is kept.
import { AccountMemory, BufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../src/base/cancellation.ts";
import { systemClock } from "../../src/base/clock.ts";
import type { Principal } from "../../src/domain/principal.ts";
import type { ClientSession, JsonObject, ToolAnswer, ToolExchange } from "../../src/domain/tools/client-session.ts";
import type { McpServer } from "../../src/domain/tools/mcp-server.ts";
import type { ClientRequest } from "../../src/mcp/server/client-call.ts";
import { RequestHandler, type RequestHandlerDeps } from "../../src/mcp/server/request-handler.ts";
import { silentLog } from "./data-directory.ts";
import { principalFor } from "./principal.ts";

export type Answering = (
  method: string,
  params: JsonObject,
  exchange: ToolExchange,
) => Promise<ToolAnswer> | ToolAnswer;

export function mcpServerFor(name: string, changes: Partial<McpServer> = {}): McpServer {
  return {
    ...{ name, title: null, description: null, place: { kind: "http", url: `http://127.0.0.1/${name}` } },
    ...{ credentials: { kind: "none" }, environments: null, accounts: null, tools: null },
    ...{ approval: "all", sharing: "person", timeoutMs: 5_000, maxResultBytes: 1_000_000, maxConcurrency: 8 },
    ...{ nanoUsdPerCall: null, local: false, enabled: true, isDeclared: true },
    ...changes,
  };
}

/** A link to a server with these tools, which `answering` calls. */
export class TestLink implements ClientSession {
  isLegacy = false;
  revision = "2026-07-28";
  capabilities: JsonObject = { tools: {}, prompts: {}, resources: {}, completions: {} };
  readonly serverInfo = { name: "test", version: "1" };
  instructions: string | undefined;
  readonly asked: { method: string; params: JsonObject }[] = [];
  readonly exchanges: ToolExchange[] = [];
  readonly #listeners = new Set<(method: string, params: JsonObject) => void>();
  readonly #answering: Answering;

  constructor(
    answering: Answering,
    changes: Partial<Pick<TestLink, "isLegacy" | "capabilities" | "instructions">> = {},
  ) {
    this.#answering = answering;
    Object.assign(this, changes);
  }

  async request(method: string, params: JsonObject, exchange: ToolExchange): Promise<ToolAnswer> {
    this.asked.push({ method, params });
    this.exchanges.push(exchange);
    const answer = await this.#answering(method, params, exchange);
    const next = "result" in answer ? await exchange.next?.(answer.result) : undefined;
    return next ? await this.request(next.method, next.params, exchange) : answer;
  }

  onChange(listener: (method: string, params: JsonObject) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changed(method: string, params: JsonObject = {}): void {
    for (const listener of [...this.#listeners]) listener(method, params);
  }

  /** Those who are told of changes. */
  get subscribers(): number {
    return this.#listeners.size;
  }
}

/** Answers lists with these tools, and calls with what `call` gives. */
export function serving(tools: readonly JsonObject[], call: Answering): Answering {
  return (method, params, exchange) => {
    if (method === "tools/list") return { result: { tools } };
    if (method.endsWith("/list")) return { result: { prompts: [], resources: [], resourceTemplates: [] } };
    return call(method, params, exchange);
  };
}

/** A handler before these, that keeps which uses have ended, and how. */
export function handlerFor(
  all: readonly (readonly [McpServer, ClientSession])[],
  changes: Partial<RequestHandlerDeps> = {},
): { handler: RequestHandler; ended: string[] } {
  const ended: string[] = [];
  const links = new Map(all.map(([{ name }, link]) => [name, link]));
  const handler = new RequestHandler({
    servers: {
      all: () => all.map(([server]) => server),
      find: (name) => all.find(([server]) => server.name === name)?.[0],
    },
    links: {
      async open({ name }) {
        const link = links.get(name);
        if (!link) throw new Error(`no link to ${name}`);
        return link;
      },
    },
    definitions: { offered: async (_server, _kind, listed) => listed },
    onChange: () => () => {},
    slots: { take: async () => () => {} },
    uses: {
      permit: async () => {},
      begin: async ({ server, method, name }) => ({
        rest() {},
        async ended({ outcome, code, isError }) {
          ended.push([server.name, method, name, outcome, code, isError].join(" "));
        },
      }),
    },
    sampler: { sample: () => Promise.reject(new Error("no models")) },
    ...{ searchFrom: () => 40, clock: systemClock, log: silentLog },
    ...changes,
  });
  return { handler, ended };
}

const held = new BufferedBytes(1e9);

export function requestFrom(
  principal: Principal = principalFor(),
  changes: Partial<ClientRequest> = {},
): ClientRequest {
  return {
    ...{ principal, requestId: `req_${crypto.randomUUID()}`, memoryAccount: held.memoryAccount(new AccountMemory()) },
    ...{ clientGone: new Cancellation(), trace: undefined, only: undefined, listing: undefined },
    ...changes,
  };
}
