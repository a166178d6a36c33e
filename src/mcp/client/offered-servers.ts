// The MCP servers that this machine, as a node, offers to its gateway. HTTP servers are forwarded; commands are started
// as processes.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type BodySink, type BodySource, bodyOf } from "../../base/bytes/body-source.ts";
import { AccountMemory, bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import { wallMs } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { parseOnceRead } from "../../base/text/json-object.ts";
import { bodyMass } from "../../base/text/json-text.ts";
import type { EngineResponse } from "../../domain/models/engine.ts";
import { type McpServer, offersTool, type ServerLocation } from "../../domain/tools/mcp-server.ts";
import { messageNames } from "../../domain/tools/message-names.ts";
import {
  maxOfferedMcpServers,
  type NodeToolRequest,
  type OfferedMcpServer,
  type OfferedTools,
  sessionField,
} from "../../domain/tools/node-tools.ts";
import { Http1Client, originOf } from "../../http1/client/client.ts";
import { ClientError } from "../../http1/client/client-contract.ts";
import { Output } from "../../processes/output.ts";
import type { ProcessTransport } from "./process-transport.ts";

export interface OfferedServersOptions {
  /** Returns the MCP servers in this machine's current configuration. */
  servers(): readonly McpServer[];
  readonly dataDir: string;
  /** Environment variables of this program. Processes get only those that every program needs. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  readonly stopMs?: number | undefined;
}

type Request = Omit<NodeToolRequest, "memoryAccount">;
type At<Kind extends ServerLocation["kind"]> = McpServer & { readonly place: ServerLocation & { readonly kind: Kind } };

const [maxProcesses, maxOfServer] = [64, 16];
const mostConnections = 512;
/** Maximum redirects, the same number as in the SDK's client. */
const maxRedirects = 5;
/** Timeouts in the tunnel, longer than those of the gateway's calls. */
const timeouts = { firstByteTimeoutMs: 600_000, idleTimeoutMs: 900_000 };
/** Milliseconds between keep-alive lines. A process may be silent for hours, but the tunnel ends silent streams. */
const aliveMs = 60_000;
/** Directory in the data directory that has a subdirectory for each server process. */
const offeredRoom = "offered-tool-processes";
/** Error codes of JSON-RPC 2.0, 5.1. */
const [parseError, invalidRequest, invalidParams] = [-32_700, -32_600, -32_602];
/** Maximum nesting depth of a message. Requests of clients are limited to half of this depth. */
const maxDepth = 128;

export class OfferedServers implements OfferedTools {
  readonly #options: OfferedServersOptions;
  readonly #memoryAccount = bufferedBytes.memoryAccount(new AccountMemory());
  readonly #clients = new Map<string, { url: string; client: Http1Client }>();
  readonly #processes = new Map<string, OfferedProcess>();
  #hasRoom = false;
  #isClosed = false;

  constructor(options: OfferedServersOptions) {
    this.#options = options;
  }

  offers(): readonly OfferedMcpServer[] {
    const offered = this.#options.servers().filter(isOffered).slice(0, maxOfferedMcpServers);
    return offered.map(({ name, title, place }) => ({ name, title, kind: place.kind === "http" ? "http" : "command" }));
  }

  /**
   * Ends the processes and connections of servers that are no longer offered. Call this after the configuration has
   * changed.
   */
  reconfigured(): void {
    for (const process of this.#processes.values()) {
      if (!Bun.deepEquals(process.server, this.#find(process.server.name))) void process.ended();
    }
    for (const [name, { url, client }] of this.#clients) {
      const place = this.#find(name)?.place;
      if (place?.kind === "http" && new URL(place.url).href === url) continue;
      client.close();
      this.#clients.delete(name);
    }
  }

  async handle(request: Request, cancellation: Cancellation): Promise<EngineResponse> {
    const server = this.#find(request.server);
    if (!server || this.#isClosed) throw notOffered(request.server);
    const { place } = server;
    if (place.kind === "http") return await this.#overHttp({ ...server, place }, request, cancellation);
    if (place.kind === "command") return await this.#byProcess({ ...server, place }, request);
    throw notOffered(request.server);
  }

  /** Ends all processes. Resolves when they have ended and their directories are deleted. */
  async shut(): Promise<void> {
    this.#isClosed = true;
    for (const { client } of this.#clients.values()) client.close();
    await Promise.all([...this.#processes.values()].map((process) => process.ended()));
  }

  #find(name: string): McpServer | undefined {
    return this.#options.servers().find((one) => one.name === name && isOffered(one));
  }

  async #overHttp(
    { name, place, credentials, tools }: At<"http">,
    { method, headers, body }: Request,
    cancellation: Cancellation,
  ): Promise<EngineResponse> {
    const asked = method === "POST" ? checked(textOf(body), tools) : undefined;
    if (asked && "refusal" in asked) return answerOf(200, asked.refusal, { "content-type": "application/json" });
    const own = credentials.kind === "headers" ? credentials.headers : {};
    const lower = Object.fromEntries(Object.entries(own).map(([field, value]) => [field.toLowerCase(), value]));
    const url = new URL(place.url);
    const sent = {
      ...{ method, memoryAccount: this.#memoryAccount },
      // Refuse compression, because a small compressed body may expand to any size.
      headers: { ...headers, ...lower, "accept-encoding": "identity" },
      ...(asked && { body: asked.text }),
    };
    try {
      let at = url;
      for (let followed = 0; ; followed++) {
        const path = `${at.pathname}${at.search}`;
        const response = await this.#clientOf(name, url).send({ ...sent, path }, timeouts, cancellation);
        const { status, body } = response;
        const next =
          followed < maxRedirects ? redirected(at, method, status, response.headers.get("location")) : undefined;
        if (!next) return { status, headers: { get: (field) => response.headers.get(field) ?? null }, body };
        body.cancel();
        at = next;
      }
    } catch (error) {
      if (!(error instanceof ClientError)) throw error;
      // Log the server's address only here; the gateway does not learn it.
      this.#options.log.warn("node_tool_server_not_reached", { server: name, detail: error.message });
      const message = `The MCP server "${name}" of this node cannot be reached.`;
      throw new GatewayError("upstream_error", message, { detail: error.fault, cause: error });
    }
  }

  #clientOf(name: string, url: URL): Http1Client {
    const known = this.#clients.get(name);
    if (known?.url === url.href) return known.client;
    known?.client.close();
    const client = new Http1Client(originOf(url), { maxConnections: mostConnections, maxWaiting: mostConnections });
    this.#clients.set(name, { url: url.href, client });
    return client;
  }

  async #byProcess(server: At<"command">, { method, headers, body }: Request): Promise<EngineResponse> {
    if (method === "GET") return await this.#start(server);
    const process = this.#processes.get(headers[sessionField] ?? "");
    if (process && !Bun.deepEquals(process.server, server)) void process.ended();
    else if (process && method === "POST") {
      const asked = checked(textOf(body), server.tools);
      if ("refusal" in asked) process.refuse(asked.refusal);
      else await process.take(asked.text);
      return answerOf(202, "");
    }
    return answerOf(404, "");
  }

  async #start(server: At<"command">): Promise<EngineResponse> {
    const { name } = server;
    const { log, dataDir, environment, stopMs } = this.#options;
    const [{ ProcessTransport }, { deserializeMessage }] = await Promise.all([
      import("./process-transport.ts"),
      import("@modelcontextprotocol/client"),
    ]);
    const ofServer = [...this.#processes.values()].filter((one) => one.server.name === name).length;
    if (this.#processes.size >= maxProcesses || ofServer >= maxOfServer || this.#isClosed) {
      const message = `As many processes run for the MCP server "${name}" of this node as may.`;
      throw new GatewayError("service_unavailable", message, { retryAfterSeconds: 2 });
    }
    const room = join(dataDir, offeredRoom);
    // Delete directories that an earlier process of Headrace left behind.
    if (!this.#hasRoom) rmSync(room, { recursive: true, force: true });
    this.#hasRoom = true;
    const id = crypto.randomUUID();
    const { command, env, directory } = server.place;
    const output = new Output(Object.values(env), () => Math.floor(wallMs() / 1000));
    const line = new ProcessTransport({
      ...{ server: name, command, env, directory, environment, dataDir, room, output, stopMs },
      maxLineBytes: server.maxResultBytes,
      onGone: () => {
        this.#processes.delete(id);
        const fault = line.fault();
        log.info("node_tool_process", { server: name, state: "ended", ...(fault && { detail: fault.detail }) });
      },
    });
    const process = new OfferedProcess(server, line, (text) => line.send(deserializeMessage(text)));
    this.#processes.set(id, process);
    log.info("node_tool_process", { server: name, state: "started" });
    const fields: Record<string, string> = { [sessionField]: id, "content-type": "application/x-ndjson" };
    return { status: 200, headers: { get: (field) => fields[field] ?? null }, body: process };
  }
}

/** The output of a process, one message per line. The process runs as long as the output is read. */
class OfferedProcess implements BodySource {
  readonly server: McpServer;
  /** Sends a message to the process. */
  readonly take: (text: string) => Promise<void>;
  readonly #line: ProcessTransport;
  #sink: BodySink | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;
  #isPaused = false;

  constructor(server: McpServer, line: ProcessTransport, take: (text: string) => Promise<void>) {
    this.server = server;
    this.take = take;
    this.#line = line;
  }

  /**
   * Sends an error to the gateway instead of passing a message to the process. Throws if the gateway does not read,
   * because errors would pile up.
   */
  refuse(text: string): void {
    if (this.#isPaused) {
      const message = `The process of the MCP server "${this.server.name}" has said what nobody takes.`;
      throw new GatewayError("service_unavailable", message, { retryAfterSeconds: 1 });
    }
    this.#sendLine(text);
  }

  /** Ends the process. Resolves when its directory is deleted. */
  async ended(): Promise<void> {
    await this.#line.close();
  }

  flow(sink: BodySink): void {
    this.#sink = sink;
    const line = this.#line;
    line.onmessage = (message) => this.#sendLine(JSON.stringify(message));
    line.onclose = () => {
      this.#sink = undefined;
      clearInterval(this.#timer);
      if (line.endedItself) sink.end();
      else sink.fail(line.fault() ?? notOffered(this.server.name));
    };
    this.#timer = setInterval(() => {
      if (!this.#isPaused) this.#sendLine("");
    }, aliveMs);
    // Ignore the error: a failed start closes the transport with the reason.
    line.start().catch(() => {});
  }

  pause(): void {
    this.#isPaused = true;
    this.#line.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#line.resume();
  }

  cancel(): void {
    this.#sink = undefined;
    clearInterval(this.#timer);
    this.#line.onclose = undefined;
    void this.#line.close();
  }

  #sendLine(text: string): void {
    this.#sink?.data(ByteSpan.of(`${text}\n`));
  }
}

/**
 * Returns the URL of a redirect to follow: only with the same method and within the origin, because the node has
 * credentials for that origin.
 */
function redirected(from: URL, method: Request["method"], status: number, location: string | null | undefined) {
  const isOne = [307, 308].includes(status) || (method === "GET" && [301, 302, 303].includes(status));
  const to = isOne && location != null ? URL.parse(location, from) : null;
  const isWithin = to?.origin === from.origin && to.username === "" && to.password === "";
  return isWithin ? to : undefined;
}

/**
 * Reports whether the server is offered to the gateway. Excluded are servers that need user accounts, and servers of
 * other nodes.
 */
function isOffered({ isShared = false, enabled, place, credentials }: McpServer): boolean {
  return isShared && enabled && place.kind !== "node" && credentials.kind !== "person";
}

/**
 * Returns the message, serialized again so that the server cannot parse it differently. Returns an error response for a
 * tool or prompt that is not offered, and for a message that the server may parse differently.
 */
function checked(text: string, tools: McpServer["tools"]): { text: string } | { refusal: string } {
  let message: unknown;
  try {
    message = parseOnceRead(text, { depth: maxDepth, ...bodyMass }).value;
  } catch {
    return refusalOf(null, parseError, "No JSON that can be read in one way alone.");
  }
  const messages: unknown[] = Array.isArray(message) ? message : [message];
  try {
    messageNames.require(message);
  } catch (error) {
    return refusalOf(null, invalidRequest, (error as Error).message);
  }
  const refused = messages.filter(isAsked).find(({ params }) => {
    const name = params?.name;
    return typeof name !== "string" || !offersTool({ tools }, name);
  });
  if (!refused) return { text: JSON.stringify(message) };
  return refusalOf(refused.id ?? null, invalidParams, `Unknown tool: ${String(refused.params?.name).slice(0, 100)}`);
}

function refusalOf(id: unknown, code: number, message: string): { refusal: string } {
  return { refusal: JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } }) };
}

interface Asked {
  readonly id?: unknown;
  readonly params?: { readonly name?: unknown };
}

function isAsked(message: unknown): message is Asked {
  const named = ["tools/call", "prompts/get"];
  return (
    typeof message === "object" && message !== null && "method" in message && named.includes(String(message.method))
  );
}

function textOf(body: Request["body"]): string {
  return typeof body === "string" ? body : body.solid.text;
}

function answerOf(status: number, text: string, fields: Readonly<Record<string, string>> = {}): EngineResponse {
  return { status, headers: { get: (name) => fields[name] ?? null }, body: bodyOf(Buffer.from(text)) };
}

function notOffered(server: string): GatewayError {
  return new GatewayError("not_found", `This node offers no MCP server "${server}": its headrace.yaml says share.`);
}
