// Knows the nodes, and which process holds whose connection; sends requests to a node by the way there is.

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
  /** Called when nodes, or what they serve, have changed: the catalog has to look again. */
  onChange(): void;
  pollMs?: number;
}

/** The place of a node's connection. */
export interface NodePlace {
  replicaId: string;
  clientAddress: string;
  /** Unix seconds. */
  connectedAt: number;
}

/** One whose connection is here. */
interface Link {
  end: GatewayEnd;
  connectedAt: number;
  /** Number of looks at the database that had begun when it came, and when it stood there; undefined: not yet. */
  cameAt: number;
  standsSince: number | undefined;
  /** The standing that the node was last told. */
  told: string;
}

/** Interval in which it is noticed that a process that held connections has died. */
const defaultPollMs = 2_000;
/** Seconds for which the models of a node that lost its connection stay on offer. */
const awaySeconds = 600;
const touchMs = 60_000;
const removed = "The node was removed from the gateway.";
const deaf: GatewayEndListener = { announced() {}, draining() {}, closed() {} };

export class NodeDirectory implements NodeWays {
  readonly #options: NodeDirectoryOptions;
  readonly #audit: BoundedAudit;
  #records = new Map<string, NodeRecord>();
  /** Held by other processes. */
  #remote: ReadonlyMap<string, NodeConnection> = new Map();
  readonly #links = new Map<string, Link>();
  /** Connections whose node has another one by now: they take nothing new and finish what they have. */
  readonly #leaving = new Set<GatewayEnd>();
  readonly #pace: ConnectionPace;
  /** Engines by id, name and limit of the node: with another of these it is another engine. */
  #engines = new Map<string, NodeEngine>();
  /** Since when nodes that were connected are away, monotonic milliseconds. */
  readonly #awaySinceMs = new Map<string, number>();
  /** The part of the records that others see, as text. */
  #recordsText = "";
  #looks = 0;
  /** The latest look whose answer is known. */
  #seenLook = 0;
  #looking: Promise<void> | undefined;
  #again = false;
  /** Writes that the database still has to be told. */
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

  /** Reads what there is. Rejects where the database cannot be asked. */
  async load(): Promise<void> {
    await this.#look();
  }

  /** Follows which processes there are; who watches for changes of nodes calls `refresh`. */
  start(): void {
    const { feed, pollMs = defaultPollMs } = this.#options;
    feed.onChange("connections", () => void this.refresh());
    this.#timers = [setInterval(() => void this.#poll(), pollMs), setInterval(() => void this.#touch(), touchMs)];
    for (const timer of this.#timers) timer.unref();
  }

  /** Nodes connect elsewhere; what is under way goes on. */
  drain(): void {
    this.#isClosing = true;
    for (const { end } of this.#links.values()) void end.drain();
  }

  /** Ends all connections, and what is under way on them. */
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

  /** Rows of the audit log that wait to be written, and how many were given up. */
  get auditFigures(): { pending: number; lost: number } {
    return this.#audit.figures;
  }

  records(): readonly NodeRecord[] {
    return [...this.#records.values()];
  }

  record(nodeId: string): NodeRecord | undefined {
    return this.#records.get(nodeId);
  }

  /** One engine for each node, the same as long as its name and limit are. */
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

  /** Its connection here. */
  local(nodeId: string): GatewayEnd | undefined {
    return this.#links.get(nodeId)?.end;
  }

  /** Undefined while it is not connected. */
  place(nodeId: string): NodePlace | undefined {
    const link = this.#links.get(nodeId);
    if (!link) return this.#remote.get(nodeId);
    const { end, connectedAt } = link;
    return { replicaId: this.#options.replicaId, clientAddress: end.clientAddress, connectedAt };
  }

  /** Whether the node itself takes nothing new; known of those that are connected here. */
  isLeaving(nodeId: string): boolean {
    return this.local(nodeId)?.draining ?? false;
  }

  isReachable(nodeId: string): boolean {
    const end = this.local(nodeId);
    return end ? !end.draining && !end.closed : this.#remote.has(nodeId);
  }

  isGone(nodeId: string): boolean {
    if (this.place(nodeId)) return false;
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
      // It has moved, or that process is gone: what is known is looked up once more.
      if (attempt === 2) throw nodeIsAway(name);
      await this.refresh();
      cancellation.throwIfCancelled();
    }
  }

  /** The key with which a node must sign; asked of the database, as a deleted one is let in no more. */
  async findKey(nodeId: string): Promise<{ publicKey: string } | { refused: "unknown" }> {
    const { store, log } = this.#options;
    const known = await store.findNode(nodeId).catch((error) => {
      log.warn("nodes_unreadable", { detail: String(error) });
      return this.#records.get(nodeId);
    });
    return known ? { publicKey: known.publicKey } : { refused: "unknown" };
  }

  /** A node that has proven who it is. It takes the place of its earlier connection. */
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
      cameAt: this.#looks,
      standsSince: undefined,
      told: "",
    };
    this.#links.set(nodeId, link);
    if (before) this.#replace(before.end);
    this.#awaySinceMs.delete(nodeId);
    this.#options.log.info("node_connected", { node: this.#nameOf(nodeId), client: end.clientAddress });
    this.#tell("node.connected", end);
    this.#tellStanding(link);
    void this.#write(nodeId, () => this.#register(link));
    return {
      announced: () => void this.#write(nodeId, () => this.#register(link)),
      draining: () => this.#options.onChange(),
      closed: (code, reason) => this.#left(link, code, reason),
    };
  }

  /** Looks at the database again; resolves once what stood there when it was called is known. Never rejects. */
  refresh(): Promise<void> {
    if (this.#looking) {
      // The look that is under way may have begun too early.
      this.#again = true;
      return this.#looking.then(() => (this.#again ? this.refresh() : this.#looking));
    }
    this.#again = false;
    this.#looking = this.#look()
      .catch((error) => this.#options.log.warn("nodes_unreadable", { detail: String(error) }))
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  #refusal(nodeId: string): [code: number, reason: string] | undefined {
    if (this.#isClosing) return [tunnelCloseCodes.goingAway, "The gateway stops."];
    // Each costs a write, and a look at all replicas. The one that it has stays.
    if (!this.#pace.take(nodeId)) return [tunnelCloseCodes.busy, "The node connects too often; it has to wait."];
    return undefined;
  }

  #replace(end: GatewayEnd): void {
    if (end.draining && end.openStreams > 0) this.#leaving.add(end);
    else end.close(tunnelCloseCodes.replaced, "The node has connected again.");
  }

  /** A node that says it leaves may never do it. */
  #endLeft(): void {
    for (const end of [...this.#leaving]) {
      if (!this.#records.has(end.nodeId)) end.close(tunnelCloseCodes.revoked, removed);
      else if (end.openStreams === 0) end.close(tunnelCloseCodes.replaced, "The node has connected again.");
    }
  }

  async #poll(): Promise<void> {
    await this.#writeAgain();
    // Nobody tells of a process that died: neither that its nodes are gone, nor when it last saw them.
    const before = [...this.#remote.keys()];
    // The last state stands until the next poll.
    if (before.length > 0) await this.#lookForConnections(++this.#looks).catch(() => {});
    if (before.some((nodeId) => !this.place(nodeId))) await this.refresh();
    this.#endLeft();
    this.#notice();
  }

  async #look(): Promise<void> {
    const { store } = this.#options;
    const look = ++this.#looks;
    const records = await store.listNodes();
    this.#records = new Map(records.map((record) => [record.id, record]));
    this.#recordsText = JSON.stringify(records.map((record) => ({ ...record, lastSeenAt: null })));
    await this.#lookForConnections(look);
    this.#endLeft();
    this.#notice();
  }

  async #lookForConnections(look: number): Promise<void> {
    const { store, replicaId } = this.#options;
    const connections = await store.listConnections();
    // Two of them can be under way, and the later one answered first.
    if (look < this.#seenLook) return;
    this.#seenLook = look;
    const before = this.#remote;
    const holders = new Map(connections.map((connection) => [connection.nodeId, connection]));
    this.#remote = new Map([...holders].filter(([, connection]) => connection.replicaId !== replicaId));
    for (const link of [...this.#links.values()]) this.#check(link, holders.get(link.end.nodeId), look);
    for (const nodeId of before.keys()) if (!this.place(nodeId)) this.#isAway(nodeId);
    for (const nodeId of this.#remote.keys()) this.#awaySinceMs.delete(nodeId);
    this.#options.forwarder.keep(connections.flatMap(({ advertiseUrl }) => advertiseUrl ?? []));
  }

  /** Whether it may stay. What was read before it came, or stood in the database, says nothing of it. */
  #check({ end, cameAt, standsSince }: Link, holder: NodeConnection | undefined, look: number): void {
    if (look > cameAt && !this.#records.has(end.nodeId)) {
      end.close(tunnelCloseCodes.revoked, removed);
    } else if (end.draining) {
      // The node has gone elsewhere, and what is open here ends in its own time.
    } else if (standsSince !== undefined && look > standsSince && holder && holder.connectionId !== end.connectionId) {
      end.close(tunnelCloseCodes.replaced, "The node has connected elsewhere.");
    }
  }

  /** Writes into the database that it is connected, and what it announces. */
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
      link.standsSince = this.#looks;
    } else {
      await store.seen(end.nodeId, seen);
    }
    await this.refresh();
  }

  #left(link: Link, code: number, reason: string): void {
    const { end } = link;
    const { nodeId, connectionId } = end;
    this.#options.log.info("node_disconnected", { node: this.#nameOf(nodeId), code, reason });
    this.#tell("node.disconnected", end, { code });
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

  /** Tells the catalog where something that it would see is another. */
  #notice(): void {
    for (const nodeId of this.#awaySinceMs.keys()) if (!this.#records.has(nodeId)) this.#awaySinceMs.delete(nodeId);
    const standing = this.records().map(({ id }) => `${id} ${this.isReachable(id)} ${this.isGone(id)}`);
    const shown = [this.#recordsText, ...standing].join("\n");
    if (shown === this.#shown) return;
    this.#shown = shown;
    for (const link of this.#links.values()) this.#tellStanding(link);
    this.#options.onChange();
  }

  #tellStanding(link: Link): void {
    const { end } = link;
    const record = this.#records.get(end.nodeId);
    if (!record || end.closed) return;
    const { name, approvedModels } = record;
    const told = JSON.stringify([name, approvedModels]);
    if (told === link.told) return;
    link.told = told;
    end.tell({ name, approvedModels });
  }

  async #touch(): Promise<void> {
    const { store, clock, log } = this.#options;
    const [nodeIds, at] = [[...this.#links.keys()], clock.nowSeconds()];
    this.#saw(nodeIds, at);
    await store.touch(nodeIds, at).catch((error) => log.warn("nodes_not_written", { detail: String(error) }));
  }

  /** Here as well as in the database, which is not read again for it. */
  #saw(nodeIds: readonly string[], at: number): void {
    for (const nodeId of nodeIds) {
      const record = this.#records.get(nodeId);
      if (record) this.#records.set(nodeId, { ...record, lastSeenAt: Math.max(at, record.lastSeenAt ?? 0) });
    }
  }

  /** Now, or, where the database takes nothing, again and again; a later one of the same node takes its place. */
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

  #tell(action: AuditAction, { nodeId, clientAddress }: GatewayEnd, detail: Record<string, unknown> = {}): void {
    this.#audit.add("known", action, () => this.#event(action, nodeId, clientAddress, detail));
  }

  #event(action: AuditAction, nodeId: string | null, clientAddress: string | null, detail: Record<string, unknown>) {
    const origin = { nowSeconds: this.#options.clock.nowSeconds(), clientAddress, requestId: null };
    return auditEvent(action, { type: "system" }, origin, aboutInstallation(nodeId, detail));
  }
}
