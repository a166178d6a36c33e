// All sessions with MCP servers, shared or for one caller. Their number is limited, and idle ones are ended.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { type Clock, wallMs } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { longLived } from "../../base/long-lived.ts";
import type { Principal } from "../../domain/principal.ts";
import type { ClientSession, ClientSessions, ToolCaller } from "../../domain/tools/client-session.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";
import { nodeRouteOf } from "../../domain/tools/node-tools.ts";
import { Output } from "../../processes/output.ts";
import { type CallerDeps, credentialsOf, requireLocal, sharingKey } from "./caller.ts";
import { type ConnectingDeps, processRoom } from "./connecting.ts";
import { PooledSession } from "./pooled-session.ts";

export interface ServerSessionsDeps extends ConnectingDeps, CallerDeps {
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly log: Log;
  readonly bounds?: Partial<SessionBounds>;
}

export interface SessionBounds {
  /** Maximum sessions with all servers together, and with one server. */
  readonly maxLinks: number;
  readonly maxOfServer: number;
  /** Maximum processes of all servers together, and of one server. */
  readonly maxProcesses: number;
  readonly maxProcessesOfServer: number;
  /** Milliseconds of idleness after which a session is ended. */
  readonly idleMs: number;
}

const defaultBounds: SessionBounds = {
  maxLinks: longLived.mcpLink.bounds.total.most,
  maxOfServer: 500,
  maxProcesses: longLived.mcpProcess.bounds.total.most,
  maxProcessesOfServer: 16,
  idleMs: longLived.mcpLink.idleMs,
};
const maxSweepMs = 15_000;
/** Milliseconds after which a server with an earlier protocol revision is asked again for a later one. */
const eraMs = 3_600_000;

/** The sessions and processes of one server. */
class LinkedServer {
  readonly links = new Map<string, PooledSession>();
  readonly output: Output;
  readonly server: McpServer;
  processes = 0;
  /** The node through which the server is reached, if any, to detect a change. */
  nodeRoute: string | undefined;
  /** Monotonic milliseconds until which the server is assumed to support only an earlier protocol revision. */
  legacyUntilMs = 0;

  constructor(server: McpServer) {
    const { place } = server;
    this.server = server;
    const secrets = place.kind === "command" ? Object.values(place.env) : [];
    this.output = new Output(secrets, () => Math.floor(wallMs() / 1000));
  }
}

export class ServerSessions implements ClientSessions {
  readonly #deps: ServerSessionsDeps;
  readonly #bounds: SessionBounds;
  readonly #servers = new Map<string, LinkedServer>();
  /** Sessions that are being closed. */
  readonly #closing = new Set<Promise<void>>();
  #processes = 0;
  #hasRoom = false;
  #timer: ReturnType<typeof setInterval> | undefined;
  #isClosed = false;

  constructor(deps: ServerSessionsDeps) {
    this.#deps = deps;
    this.#bounds = { ...defaultBounds, ...deps.bounds };
  }

  async open(server: McpServer, { principal }: ToolCaller): Promise<ClientSession> {
    const key = await sharingKey(server, principal, this.#deps.connections);
    if (this.#isClosed) throw unavailable("The server is about to stop.");
    requireLocal(server, principal, this.#deps.nodes);
    const linked = this.#linkedOf(server);
    let link = linked.links.get(key);
    if (!link) {
      this.#makeRoom(server, linked);
      link = await this.#linkTo(server, linked, principal);
      // While the code was loading, the server may have changed, or another caller may have opened the session.
      if (this.#servers.get(server.name) !== linked)
        throw unavailable(`The MCP server "${server.name}" has just changed.`);
      link = linked.links.get(key) ?? link;
      linked.links.set(key, link);
      this.#sweepFromNowOn();
    }
    try {
      await link.ready();
    } catch (error) {
      const { code, detail = "" } = error instanceof GatewayError ? error : new GatewayError("internal_error", "");
      this.#deps.log.warn("tool_server_not_reached", { server: server.name, code, detail });
      throw error;
    }
    return link;
  }

  /** Opens a session for a test only. It counts against the limits, and the caller must end it. */
  separate(server: McpServer, { principal }: ToolCaller) {
    const linked = new LinkedServer(server);
    // The space makes the key different from every server's name.
    const key = `separate ${crypto.randomUUID()}`;
    this.#servers.set(key, linked);
    return {
      open: async (): Promise<ClientSession> => {
        if (this.#isClosed) throw unavailable("The server is about to stop.");
        this.#makeRoom(server, linked);
        const link = await this.#linkTo(server, linked, principal);
        if (this.#servers.get(key) !== linked) throw unavailable("The test is over.");
        linked.links.set("", link);
        await link.ready();
        return link;
      },
      output: () => linked.output.after(0).map(({ text }) => text),
      end: () => this.close(key),
    };
  }

  close(server: string): void {
    const linked = this.#servers.get(server);
    this.#servers.delete(server);
    for (const link of linked?.links.values() ?? []) this.#end(link);
  }

  /**
   * Handles a change of nodes: connections to nodes that have gone take no new requests, and listeners are notified.
   */
  nodesChanged(): void {
    for (const linked of this.#servers.values()) {
      const nodeRoute = nodeRouteOf(linked.server, this.#deps.nodes);
      if (nodeRoute === linked.nodeRoute) continue;
      const isLost = linked.nodeRoute !== undefined;
      linked.nodeRoute = nodeRoute;
      // The server may support another protocol revision when it is back.
      linked.legacyUntilMs = 0;
      for (const link of linked.links.values()) link.moved(isLost);
    }
  }

  /**
   * Returns the last lines that the server's processes wrote to standard error, beginning after the line number
   * `after`.
   */
  output(server: string, after = 0): ReturnType<Output["after"]> {
    return this.#servers.get(server)?.output.after(after) ?? [];
  }

  /** Numbers of sessions and processes, for tests and metrics. */
  get counts(): { links: number; processes: number } {
    let links = 0;
    for (const linked of this.#servers.values()) links += linked.links.size;
    return { links, processes: this.#processes };
  }

  /** Ends all sessions. Resolves when they are closed. */
  async shut(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    for (const server of [...this.#servers.keys()]) this.close(server);
    await Promise.all(this.#closing);
  }

  #linkedOf(server: McpServer): LinkedServer {
    const known = this.#servers.get(server.name);
    if (known && (known.server === server || Bun.deepEquals(known.server, server))) return known;
    // The server's settings have changed, so close its earlier sessions.
    if (known) this.close(server.name);
    const linked = new LinkedServer(server);
    linked.nodeRoute = nodeRouteOf(server, this.#deps.nodes);
    this.#servers.set(server.name, linked);
    return linked;
  }

  async #linkTo(server: McpServer, linked: LinkedServer, principal: Principal): Promise<PooledSession> {
    const { name } = server;
    const { clock } = this.#deps;
    const credentials = credentialsOf(server, principal, this.#deps);
    // Load the SDK's client only when the first server is used.
    const { connect } = await import("./connect.ts");
    return new PooledSession({
      ...{ server: name, clock },
      onDoubt: () => {
        linked.legacyUntilMs = 0;
      },
      connect: async (onNotification, signal) => {
        if (server.place.kind === "command") {
          this.#requireProcess(server, linked);
          this.#clearRoom();
        }
        const isLegacy = clock.monotonicMs() < linked.legacyUntilMs;
        const onProcess = (change: 1 | -1) => {
          linked.processes += change;
          this.#processes += change;
        };
        const { output } = linked;
        const connecting = { server, credentials, isLegacy, output, signal, onNotification, onProcess };
        const connection = await connect(connecting, this.#deps).catch((error: unknown) => {
          if (isFullNode(error, server)) this.#makeRoomAtNode(linked);
          throw error;
        });
        if (connection.isLegacy && !isLegacy) linked.legacyUntilMs = clock.monotonicMs() + eraMs;
        return connection;
      },
    });
  }

  /** Ends an idle session if there are too many. Throws if none is idle. */
  #makeRoom(server: McpServer, linked: LinkedServer): void {
    const { maxLinks, maxOfServer } = this.#bounds;
    const isFull = linked.links.size >= maxOfServer || this.counts.links >= maxLinks;
    if (isFull && !this.#endOldest(linked.links.size >= maxOfServer ? [linked] : [...this.#servers.values()])) {
      throw unavailable(`All connections to the MCP server "${server.name}" are in use.`);
    }
  }

  #requireProcess(server: McpServer, linked: LinkedServer): void {
    const { maxProcesses, maxProcessesOfServer } = this.#bounds;
    const isFullOfOwn = linked.processes >= maxProcessesOfServer;
    if (!isFullOfOwn && this.#processes < maxProcesses) return;
    // End an idle process, although its slot becomes free too late for this call. A later caller can use the slot.
    this.#endOldest(isFullOfOwn ? [linked] : [...this.#servers.values()].filter(({ processes }) => processes > 0));
    throw unavailable(`As many processes run for the MCP server "${server.name}" as may.`);
  }

  /**
   * Ends an idle session at the server's node. Its slot becomes free too late for this call, but a later caller can use
   * it.
   */
  #makeRoomAtNode(linked: LinkedServer): void {
    if (this.#endOldest([linked])) return;
    this.#endOldest([...this.#servers.values()].filter(({ nodeRoute }) => nodeRoute === linked.nodeRoute));
  }

  /** Deletes the process directories that an earlier gateway left behind when it was killed. */
  #clearRoom(): void {
    if (this.#hasRoom) return;
    this.#hasRoom = true;
    rmSync(join(this.#deps.dataDir, processRoom), { recursive: true, force: true });
  }

  /** Ends the session that has been idle for longest. Returns false if none is idle. */
  #endOldest(of: readonly LinkedServer[]): boolean {
    let oldest: { linked: LinkedServer; key: string; link: PooledSession; idleSinceMs: number } | undefined;
    for (const linked of of) {
      for (const [key, link] of linked.links) {
        const { idleSinceMs } = link;
        if (idleSinceMs === undefined || (oldest && oldest.idleSinceMs <= idleSinceMs)) continue;
        oldest = { linked, key, link, idleSinceMs };
      }
    }
    if (!oldest) return false;
    oldest.linked.links.delete(oldest.key);
    this.#end(oldest.link);
    return true;
  }

  #end(link: PooledSession): void {
    const closing = link.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  #sweepFromNowOn(): void {
    if (this.#timer) return;
    this.#timer = setInterval(() => this.#sweep(), Math.min(this.#bounds.idleMs, maxSweepMs));
    this.#timer.unref();
  }

  #sweep(): void {
    const beforeMs = this.#deps.clock.monotonicMs() - this.#bounds.idleMs;
    for (const { links } of this.#servers.values()) {
      for (const [key, link] of links) {
        if (link.idleSinceMs === undefined || link.idleSinceMs > beforeMs) continue;
        links.delete(key);
        this.#end(link);
      }
    }
    if (this.counts.links > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

function isFullNode(error: unknown, { place }: McpServer): boolean {
  return place.kind === "node" && error instanceof GatewayError && error.code === "service_unavailable";
}

function unavailable(why: string): GatewayError {
  return new GatewayError("service_unavailable", `${why} Retry in 2 s.`, { retryAfterSeconds: 2 });
}
