// Knows all nodes and the gateway process that each is connected to. Sends requests to nodes, also through other
// processes.

import type { Cancellation } from "../base/cancellation.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { AuditAction, AuditLog } from "../domain/audit.ts";
import type { ChangeFeed } from "../domain/change-feed.ts";
import type { EngineResponse } from "../domain/models/engine.ts";
import { maxNodeModels, type NodeConnection, type NodeRecord, type NodeStore } from "../domain/models/node.ts";
import { aboutInstallation, auditEvent } from "../policy/records/audit.ts";
import { BoundedAudit } from "../policy/records/bounded-audit.ts";
import { ConnectionPace } from "./connection-pace.ts";
import { NodeEngine, type NodeWays, nodeIsAway } from "./node-engine.ts";
import type { ReplicaForwarder } from "./replica-forwarder.ts";
import { type GatewayEnd, type GatewayEndListener, type TunnelRequest, tunnelCloseCodes } from "./tunnel/contract.ts";

export interface NodeDirectoryOptions {
  store: NodeStore;
  feed: Pick<ChangeFeed, "onChange">;
  /** Id of this process. */
  replicaId: string;
  forwarder: Pick<ReplicaForwarder, "send" | "keep">;
  audit: Pick<AuditLog, "append">;
  clock: Clock;
  log: Log;
  /** Called when nodes or their models have changed, so that the catalog is refreshed. */
  onChange(): void;
  pollMs?: number;
}

/** The gateway process that a node is connected to, and the node's address. */
export interface NodeLocation {
  replicaId: string;
  clientAddress: string;
  /** Unix seconds at which the node connected. */
  connectedAt: number;
}

/** A node that is connected to this process. */
interface Link {
  end: GatewayEnd;
  connectedAt: number;
  /**
   * `cameAt` is the number of the last database read that began before the node connected. `standsSince` is the number
   * of the last database read when the connection was written to the database; undefined before that.
   */
  cameAt: number;
  standsSince: number | undefined;
  /** JSON of the status that was last sent to the node. */
  sentStatus: string;
}

/** Milliseconds between polls, which notice that another gateway process has died. */
const defaultPollMs = 2_000;
/** Seconds for which a disconnected node's models stay available. */
const awaySeconds = 600;
const touchMs = 60_000;
const removed = "The node was removed from the gateway.";
const deaf: GatewayEndListener = { announced() {}, draining() {}, closed() {} };

export class NodeDirectory implements NodeWays {
  readonly #options: NodeDirectoryOptions;
  readonly #audit: BoundedAudit;
  #records = new Map<string, NodeRecord>();
  /** Nodes that are connected to other processes, by node id. */
  #remote: ReadonlyMap<string, NodeConnection> = new Map();
  readonly #links = new Map<string, Link>();
  /** Older connections of nodes that have connected again. They only finish their running requests. */
  readonly #leaving = new Set<GatewayEnd>();
  readonly #pace: ConnectionPace;
  /** Engines by id, name and limit of the node, because a change of these requires a new engine. */
  #engines = new Map<string, NodeEngine>();
  /** For each disconnected node, the monotonic milliseconds of its disconnection. */
  readonly #awaySinceMs = new Map<string, number>();
  /** JSON of all node records without the time of last contact, to detect changes. */
  #recordsText = "";
  #polls = 0;
  /** Number of the latest database read whose result was used. */
  #seenPoll = 0;
  #polling: Promise<void> | undefined;
  #again = false;
  /** Database writes that have not succeeded yet, by node. */
  readonly #unwritten = new Map<string, () => Promise<void>>();
  #timers: ReturnType<typeof setInterval>[] = [];
  #isClosing = false;
  #shown = "";

  constructor(options: NodeDirectoryOptions) {
    this.#options = options;
    this.#pace = new ConnectionPace(options.clock);
    this.#audit = new BoundedAudit({
      ...options,
      faultName: "node_connections_not_audited",
      action: "node.connected",
    });
  }

  /** Reads all nodes. Rejects if the database cannot be read. */
  async load(): Promise<void> {
    await this.#readRecords();
  }

  /** Begins to poll for connections at other processes. `refresh` must be called when nodes have changed. */
  start(): void {
    const { feed, pollMs = defaultPollMs } = this.#options;
    feed.onChange("connections", () => void this.refresh());
    this.#timers = [setInterval(() => void this.#poll(), pollMs), setInterval(() => void this.#touch(), touchMs)];
    for (const timer of this.#timers) timer.unref();
  }

  /** Tells the nodes to connect to another gateway process. Running requests continue. */
  drain(): void {
    this.#isClosing = true;
    for (const { end } of this.#links.values()) void end.drain();
  }

  /** Closes all connections and ends their running requests. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const timer of this.#timers) clearInterval(timer);
    const ends = [...this.#links.values()].map(({ end }) => end);
    for (const end of [...ends, ...this.#leaving]) end.close(tunnelCloseCodes.goingAway, "The gateway stops.");
    const { store, clock, log } = this.#options;
    for (const { nodeId, connectionId } of ends) {
      await store
        .disconnected(nodeId, connectionId, clock.nowSeconds())
        .catch((error) => log.warn("nodes_not_written", { detail: String(error) }));
    }
    await this.#audit.close();
  }

  /** Number of audit log rows that are not written yet, and of those that were lost. */
  get auditFigures(): { pending: number; lost: number } {
    return this.#audit.figures;
  }

  records(): readonly NodeRecord[] {
    return [...this.#records.values()];
  }

  record(nodeId: string): NodeRecord | undefined {
    return this.#records.get(nodeId);
  }

  /** Returns an engine for each node. It stays the same object until the node's name or limit changes. */
  engines(): readonly { record: NodeRecord; engine: NodeEngine }[] {
    const kept = new Map<string, NodeEngine>();
    const engines = this.records().map((record) => {
      const identity = JSON.stringify([record.id, record.name, record.maxConcurrency]);
      const engine = this.#engines.get(identity) ?? new NodeEngine(record, this);
      kept.set(identity, engine);
      return { record, engine };
    });
    this.#engines = kept;
    return engines;
  }

  /** Returns the node's connection to this process; undefined if there is none. */
  local(nodeId: string): GatewayEnd | undefined {
    return this.#links.get(nodeId)?.end;
  }

  /** Returns which process the node is connected to; undefined if it is disconnected. */
  locate(nodeId: string): NodeLocation | undefined {
    const link = this.#links.get(nodeId);
    if (!link) return this.#remote.get(nodeId);
    const { end, connectedAt } = link;
    return { replicaId: this.#options.replicaId, clientAddress: end.clientAddress, connectedAt };
  }

  /** Reports whether the node has announced that it stops. False for nodes at other processes. */
  isLeaving(nodeId: string): boolean {
    return this.local(nodeId)?.draining ?? false;
  }

  isReachable(nodeId: string): boolean {
    const end = this.local(nodeId);
    return end ? !end.draining && !end.closed : this.#remote.has(nodeId);
  }

  isGone(nodeId: string): boolean {
    if (this.locate(nodeId)) return false;
    const { clock } = this.#options;
    const since = this.#awaySinceMs.get(nodeId);
    if (since !== undefined) return clock.monotonicMs() - since > awaySeconds * 1000;
    const seen = this.#records.get(nodeId)?.lastSeenAt ?? null;
    return seen === null || clock.nowSeconds() - seen > awaySeconds;
  }

  async send(nodeId: string, request: TunnelRequest, cancellation: Cancellation): Promise<EngineResponse> {
    for (let attempt = 1; ; attempt++) {
      const end = this.local(nodeId);
      if (end && !end.closed) return end.send(request, cancellation);
      const remote = this.#remote.get(nodeId);
      const name = this.#records.get(nodeId)?.name ?? nodeId;
      if (!remote) throw nodeIsAway(name);
      const sent = await this.#options.forwarder.send(remote, request, cancellation);
      if (sent !== "not_there") return sent;
      // The node may have connected to another process, so read the connections once more.
      if (attempt === 2) throw nodeIsAway(name);
      await this.refresh();
      cancellation.throwIfCancelled();
    }
  }

  /** Returns the public key of a node. Reads the database, so that a deleted node cannot connect. */
  async findKey(nodeId: string): Promise<{ publicKey: string } | { refused: "unknown" }> {
    const { store, log } = this.#options;
    const known = await store.findNode(nodeId).catch((error) => {
      log.warn("nodes_unreadable", { detail: String(error) });
      return this.#records.get(nodeId);
    });
    return known ? { publicKey: known.publicKey } : { refused: "unknown" };
  }

  /** Takes the connection of a verified node, in place of an earlier one. */
  connected(end: GatewayEnd): GatewayEndListener {
    const { nodeId } = end;
    const refusal = this.#refusal(nodeId);
    if (refusal) {
      end.close(...refusal);
      return deaf;
    }
    const before = this.#links.get(nodeId);
    const link: Link = {
      end,
      connectedAt: this.#options.clock.nowSeconds(),
      cameAt: this.#polls,
      standsSince: undefined,
      sentStatus: "",
    };
    this.#links.set(nodeId, link);
    if (before) this.#replace(before.end);
    this.#awaySinceMs.delete(nodeId);
    this.#options.log.info("node_connected", { node: this.#nameOf(nodeId), client: end.clientAddress });
    this.#recordEvent("node.connected", end);
    this.#sendStatus(link);
    void this.#write(nodeId, () => this.#register(link));
    return {
      announced: () => void this.#write(nodeId, () => this.#register(link)),
      draining: () => this.#options.onChange(),
      closed: (code, reason) => this.#linkClosed(link, code, reason),
    };
  }

  /**
   * Reads nodes and connections from the database. Resolves when everything that was written before the call is known.
   * Never rejects.
   */
  refresh(): Promise<void> {
    if (this.#polling) {
      // The running read may have begun before the change.
      this.#again = true;
      return this.#polling.then(() => (this.#again ? this.refresh() : this.#polling));
    }
    this.#again = false;
    this.#polling = this.#readRecords()
      .catch((error) => this.#options.log.warn("nodes_unreadable", { detail: String(error) }))
      .finally(() => {
        this.#polling = undefined;
      });
    return this.#polling;
  }

  #refusal(nodeId: string): [code: number, reason: string] | undefined {
    if (this.#isClosing) return [tunnelCloseCodes.goingAway, "The gateway stops."];
    // Limit new connections, because each costs database writes and reads. If one is refused, the current one stays.
    if (!this.#pace.take(nodeId)) return [tunnelCloseCodes.busy, "The node connects too often; it has to wait."];
    return undefined;
  }

  #replace(end: GatewayEnd): void {
    if (end.draining && end.openStreams > 0) this.#leaving.add(end);
    else end.close(tunnelCloseCodes.replaced, "The node has connected again.");
  }

  /**
   * Closes older connections that have no running requests or whose node was removed. A node that has announced that it
   * stops may never close them.
   */
  #endRemoved(): void {
    for (const end of [...this.#leaving]) {
      if (!this.#records.has(end.nodeId)) end.close(tunnelCloseCodes.revoked, removed);
      else if (end.openStreams === 0) end.close(tunnelCloseCodes.replaced, "The node has connected again.");
    }
  }

  async #poll(): Promise<void> {
    await this.#writeAgain();
    // A process that died does not report that its nodes are disconnected.
    const before = [...this.#remote.keys()];
    // Ignore the error: until the next poll, the last known state is used.
    if (before.length > 0) await this.#readConnections(++this.#polls).catch(() => {});
    if (before.some((nodeId) => !this.locate(nodeId))) await this.refresh();
    this.#endRemoved();
    this.#notice();
  }

  async #readRecords(): Promise<void> {
    const { store } = this.#options;
    const pollNumber = ++this.#polls;
    const records = await store.listNodes();
    this.#records = new Map(records.map((record) => [record.id, record]));
    this.#recordsText = JSON.stringify(records.map((record) => ({ ...record, lastSeenAt: null })));
    await this.#readConnections(pollNumber);
    this.#endRemoved();
    this.#notice();
  }

  async #readConnections(pollNumber: number): Promise<void> {
    const { store, replicaId } = this.#options;
    const connections = await store.listConnections();
    // Ignore the result if a later read has already been used.
    if (pollNumber < this.#seenPoll) return;
    this.#seenPoll = pollNumber;
    const before = this.#remote;
    const holders = new Map(connections.map((connection) => [connection.nodeId, connection]));
    this.#remote = new Map([...holders].filter(([, connection]) => connection.replicaId !== replicaId));
    for (const link of [...this.#links.values()]) this.#check(link, holders.get(link.end.nodeId), pollNumber);
    for (const nodeId of before.keys()) if (!this.locate(nodeId)) this.#isAway(nodeId);
    for (const nodeId of this.#remote.keys()) this.#awaySinceMs.delete(nodeId);
    this.#options.forwarder.keep(connections.flatMap(({ advertiseUrl }) => advertiseUrl ?? []));
  }

  /**
   * Closes a connection if the node was removed or has connected elsewhere. A database read that began before the
   * connection was written proves nothing.
   */
  #check({ end, cameAt, standsSince }: Link, holder: NodeConnection | undefined, pollNumber: number): void {
    if (pollNumber > cameAt && !this.#records.has(end.nodeId)) {
      end.close(tunnelCloseCodes.revoked, removed);
    } else if (end.draining) {
      // The node is connected elsewhere; here it only finishes open requests.
    } else if (
      standsSince !== undefined &&
      pollNumber > standsSince &&
      holder &&
      holder.connectionId !== end.connectionId
    ) {
      end.close(tunnelCloseCodes.replaced, "The node has connected elsewhere.");
    }
  }

  /** Writes a node's connection and announcement to the database. */
  async #register(link: Link): Promise<void> {
    const { store, replicaId, clock } = this.#options;
    const { end, connectedAt } = link;
    if (this.#links.get(end.nodeId) !== link || !end.announcement) return;
    const { version, models, toolServers = [] } = end.announcement;
    const seen = { announced: models.slice(0, maxNodeModels), toolServers, version, at: clock.nowSeconds() };
    if (link.standsSince === undefined) {
      const { nodeId, connectionId, clientAddress } = end;
      const isKnown = await store.connected({ nodeId, replicaId, connectionId, clientAddress, connectedAt }, seen);
      if (!isKnown) return end.close(tunnelCloseCodes.unknownNode, "The gateway does not know this node.");
      link.standsSince = this.#polls;
    } else {
      await store.seen(end.nodeId, seen);
    }
    await this.refresh();
  }

  #linkClosed(link: Link, code: number, reason: string): void {
    const { end } = link;
    const { nodeId, connectionId } = end;
    this.#options.log.info("node_disconnected", { node: this.#nameOf(nodeId), code, reason });
    this.#recordEvent("node.disconnected", end, { code });
    this.#leaving.delete(end);
    if (this.#links.get(nodeId) !== link) return;
    this.#links.delete(nodeId);
    this.#isAway(nodeId);
    const { store, clock } = this.#options;
    const at = clock.nowSeconds();
    this.#saw([nodeId], at);
    void this.#write(nodeId, () => store.disconnected(nodeId, connectionId, at));
    this.#notice();
  }

  #isAway(nodeId: string): void {
    if (!this.#awaySinceMs.has(nodeId)) this.#awaySinceMs.set(nodeId, this.#options.clock.monotonicMs());
  }

  /** Notifies the catalog and the nodes if anything visible has changed. */
  #notice(): void {
    for (const nodeId of this.#awaySinceMs.keys()) if (!this.#records.has(nodeId)) this.#awaySinceMs.delete(nodeId);
    const statuses = this.records().map(({ id }) => `${id} ${this.isReachable(id)} ${this.isGone(id)}`);
    const shown = [this.#recordsText, ...statuses].join("\n");
    if (shown === this.#shown) return;
    this.#shown = shown;
    for (const link of this.#links.values()) this.#sendStatus(link);
    this.#options.onChange();
  }

  #sendStatus(link: Link): void {
    const { end } = link;
    const record = this.#records.get(end.nodeId);
    if (!record || end.closed) return;
    const { name, approvedModels } = record;
    const statusText = JSON.stringify([name, approvedModels]);
    if (statusText === link.sentStatus) return;
    link.sentStatus = statusText;
    end.sendStatus({ name, approvedModels });
  }

  async #touch(): Promise<void> {
    const { store, clock, log } = this.#options;
    const [nodeIds, at] = [[...this.#links.keys()], clock.nowSeconds()];
    this.#saw(nodeIds, at);
    await store.touch(nodeIds, at).catch((error) => log.warn("nodes_not_written", { detail: String(error) }));
  }

  /** Updates the time of last contact in memory, to save database reads. */
  #saw(nodeIds: readonly string[], at: number): void {
    for (const nodeId of nodeIds) {
      const record = this.#records.get(nodeId);
      if (record) this.#records.set(nodeId, { ...record, lastSeenAt: Math.max(at, record.lastSeenAt ?? 0) });
    }
  }

  /**
   * Writes to the database, and tries again at each poll until it succeeds. A later write for the same node replaces
   * this one.
   */
  async #write(nodeId: string, work: () => Promise<void>): Promise<void> {
    this.#unwritten.set(nodeId, work);
    await this.#writeOne(nodeId, work);
  }

  async #writeOne(nodeId: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      if (this.#unwritten.get(nodeId) === work) this.#unwritten.delete(nodeId);
    } catch (error) {
      this.#options.log.warn("nodes_not_written", { node: this.#nameOf(nodeId), detail: String(error) });
    }
  }

  async #writeAgain(): Promise<void> {
    for (const [nodeId, work] of [...this.#unwritten]) await this.#writeOne(nodeId, work);
  }

  #nameOf(nodeId: string): string {
    return this.#records.get(nodeId)?.name ?? nodeId;
  }

  #recordEvent(action: AuditAction, { nodeId, clientAddress }: GatewayEnd, detail: Record<string, unknown> = {}): void {
    this.#audit.add("known", action, () => this.#event(action, nodeId, clientAddress, detail));
  }

  #event(action: AuditAction, nodeId: string | null, clientAddress: string | null, detail: Record<string, unknown>) {
    const origin = { nowSeconds: this.#options.clock.nowSeconds(), clientAddress, requestId: null };
    return auditEvent(action, { type: "system" }, origin, aboutInstallation(nodeId, detail));
  }
}
