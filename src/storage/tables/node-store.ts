// Nodes, their join tokens, and the processes that hold their connections, in the database.
import type { AuditEvent } from "../../domain/audit.ts";
import type { ChangeFeed } from "../../domain/change-feed.ts";
import {
  maxNodes,
  type NodeChange,
  type NodeConnection,
  type NodeJoinToken,
  type NodeRecord,
  type NodeSeen,
  type NodeStore,
} from "../../domain/models/node.ts";
import { replicaGoneSeconds } from "../../domain/replica.ts";
import { type Database, databaseSeconds } from "../sql/database.ts";
import { confirmCommits, requireSync } from "../sql/durable-commits.ts";
import { added, available, written } from "../sql/outage.ts";
import { flag, integer, json, named, table, text } from "../sql/table.ts";
import { insertAuditEvent } from "./audit-log.ts";
import { whileActive } from "./credential-change.ts";
import { raiseRevision } from "./revisions.ts";
import { changeRouting, setDrained } from "./routing-change.ts";

const nodes = table<NodeRecord>({
  id: text,
  name: text,
  publicKey: text,
  approvedModels: named("models", json),
  environments: json,
  maxConcurrency: integer,
  local: named("is_local", flag),
  announced: json,
  toolServers: json,
  version: text,
  createdAt: integer,
  lastSeenAt: integer,
});

const joinTokens = table<NodeJoinToken>({
  id: text,
  digest: text,
  last4: text,
  approvedModels: {
    name: "models",
    write: (models) => (models.length === 0 ? null : JSON.stringify(models)),
    read: (value) => (value === null ? [] : json.read(value)),
  },
  environments: json,
  createdBy: text,
  createdAt: integer,
  expiresAt: integer,
  usedAt: integer,
  nodeId: text,
});

const connections = table<Omit<NodeConnection, "advertiseUrl">>({
  nodeId: text,
  replicaId: text,
  connectionId: text,
  clientAddress: text,
  connectedAt: integer,
});
/** Connections held by live processes, with the processes' URLs. */
const liveConnections = table<NodeConnection>({ ...connections.columns, advertiseUrl: text });

/** Seconds for which used and expired tokens are listed. */
const tokensKeptSeconds = 604_800;
const maxTokensListed = 1_000;

export class SqlNodeStore implements NodeStore {
  readonly #db: Database;
  readonly #feed: Pick<ChangeFeed, "announce">;

  constructor(db: Database, feed: Pick<ChangeFeed, "announce">) {
    this.#db = db;
    this.#feed = feed;
  }

  listNodes(): Promise<NodeRecord[]> {
    return available(nodes.all(this.#db`SELECT * FROM nodes ORDER BY name`));
  }

  listConnections(): Promise<NodeConnection[]> {
    const db = this.#db;
    const rows = db`
      SELECT ${db.unsafe(liveConnections.list)}
      FROM node_connections JOIN replicas ON replicas.id = node_connections.replica_id
      WHERE replicas.seen_at > ${databaseSeconds(db)} - ${replicaGoneSeconds} ORDER BY node_id`;
    return available(liveConnections.all(rows));
  }

  findNode(id: string): Promise<NodeRecord | undefined> {
    return available(nodes.first(this.#db`SELECT * FROM nodes WHERE id = ${id}`));
  }

  async enrol(
    node: NodeRecord,
    { digests, at, isFree }: Parameters<NodeStore["enrol"]>[1],
    event: (token: NodeJoinToken) => AuditEvent,
  ): ReturnType<NodeStore["enrol"]> {
    await requireSync(this.#db);
    const outcome = await written(this.#db, async (tx): Promise<Awaited<ReturnType<NodeStore["enrol"]>>> => {
      const token = await joinTokens.first(tx`SELECT * FROM node_join_tokens WHERE digest IN ${tx([...digests])}`);
      if (!token) return "unknown";
      if (token.usedAt !== null) return "used";
      if (token.expiresAt <= at) return "expired";
      if (!isFree || (await isTaken(tx, node.name))) return "name_taken";
      const [count] = await tx`SELECT count(*) AS nodes FROM nodes`;
      if (Number(count?.nodes ?? 0) >= maxNodes) return "too_many";
      const { approvedModels, environments } = token;
      const inserted: unknown[] = await tx`
        INSERT INTO nodes ${tx(nodes.row({ ...node, approvedModels, environments }))}
        ON CONFLICT DO NOTHING RETURNING id`;
      // The insert fails if another node has the same public key.
      if (inserted.length === 0) return "unknown";
      await tx`UPDATE node_join_tokens SET used_at = ${at}, node_id = ${node.id} WHERE id = ${token.id}`;
      // A removed upstream of this name may have been drained.
      await tx`DELETE FROM drained_upstreams WHERE name = ${node.name}`;
      await insertAuditEvent(tx, event(token));
      await raiseRevision(tx, "routing");
      return "enrolled";
    });
    if (outcome === "enrolled") {
      this.#feed.announce("routing");
      await confirmCommits(this.#db);
    }
    return outcome;
  }

  changeNode(id: string, change: NodeChange, event: AuditEvent): Promise<boolean> {
    return this.#change(event, async (tx) => {
      const before = await nodes.first(tx`SELECT * FROM nodes WHERE id = ${id}`);
      if (!before) return false;
      const { draining, name = before.name, ...settings } = change;
      if (name !== before.name && (await isTaken(tx, name))) return false;
      const updated = { ...before, ...settings, name };
      const row = nodes.part(updated, "name", "approvedModels", "environments", "maxConcurrency", "local");
      await tx`UPDATE nodes SET ${tx(row)} WHERE id = ${id}`;
      if (name !== before.name) {
        // A drained node stays drained under its new name.
        await tx`DELETE FROM drained_upstreams WHERE name = ${name}`;
        await tx`UPDATE drained_upstreams SET name = ${name} WHERE name = ${before.name}`;
      }
      if (draining !== undefined) await setDrained(tx, name, draining, event.at);
      return true;
    });
  }

  deleteNode(id: string, event: AuditEvent): Promise<boolean> {
    return this.#change(event, async (tx) => {
      const [deleted]: { name: string }[] = await tx`DELETE FROM nodes WHERE id = ${id} RETURNING name`;
      if (!deleted) return false;
      await tx`DELETE FROM node_connections WHERE node_id = ${id}`;
      await tx`DELETE FROM drained_upstreams WHERE name = ${deleted.name}`;
      return true;
    });
  }

  async insertToken(token: NodeJoinToken, event: AuditEvent): Promise<void> {
    await whileActive(this.#db, event, async (tx) => {
      await tx`DELETE FROM node_join_tokens WHERE expires_at < ${event.at - tokensKeptSeconds}`;
      await tx`INSERT INTO node_join_tokens ${tx(joinTokens.row(token))}`;
      await insertAuditEvent(tx, event);
    });
  }

  listTokens(): Promise<NodeJoinToken[]> {
    const rows = this.#db`SELECT * FROM node_join_tokens ORDER BY id DESC LIMIT ${maxTokensListed}`;
    return available(joinTokens.all(rows));
  }

  async deleteToken(id: string, event: AuditEvent): Promise<boolean> {
    const deleted = await whileActive(this.#db, event, async (tx) => {
      const tokens: unknown[] = await tx`DELETE FROM node_join_tokens WHERE id = ${id} RETURNING id`;
      if (tokens.length > 0) await insertAuditEvent(tx, event);
      return tokens.length > 0;
    });
    // Tokens are looked up each time, so no cache has to drop this one. But a power cut must not restore a deleted
    // token.
    if (deleted) await confirmCommits(this.#db);
    return deleted;
  }

  async connected(connection: Omit<NodeConnection, "advertiseUrl">, seen: NodeSeen): Promise<boolean> {
    const { node_id: _, ...row } = connections.row(connection);
    const known = await written(this.#db, async (tx) => {
      if ((await writeSeen(tx, connection.nodeId, seen)) === undefined) return false;
      await tx`
        INSERT INTO node_connections ${tx(connections.row(connection))}
        ON CONFLICT (node_id) DO UPDATE SET ${tx(row)}`;
      await raiseRevision(tx, "routing");
      return true;
    });
    if (known) this.#feed.announce("connections");
    return known;
  }

  async disconnected(nodeId: string, connectionId: string, at: number): Promise<void> {
    const gone = await written(this.#db, async (tx) => {
      const deleted: unknown[] = await tx`
        DELETE FROM node_connections WHERE node_id = ${nodeId} AND connection_id = ${connectionId} RETURNING node_id`;
      if (deleted.length === 0) return false;
      await tx`UPDATE nodes SET last_seen_at = ${at} WHERE id = ${nodeId}`;
      await raiseRevision(tx, "routing");
      return true;
    });
    if (gone) this.#feed.announce("connections");
  }

  async seen(nodeId: string, seen: NodeSeen): Promise<void> {
    const changed = await written(this.#db, async (tx) => {
      const isNew = await writeSeen(tx, nodeId, seen);
      if (isNew) await raiseRevision(tx, "routing");
      return isNew;
    });
    if (changed) this.#feed.announce("routing");
  }

  async touch(nodeIds: readonly string[], at: number): Promise<void> {
    if (nodeIds.length === 0) return;
    await added(this.#db, (tx) => tx`UPDATE nodes SET last_seen_at = ${at} WHERE id IN ${tx([...nodeIds])}`);
  }

  /** Runs `work`, which returns whether it wrote anything. Notifies the change feed after the commit. */
  #change(event: AuditEvent, work: (tx: Database) => Promise<boolean>): Promise<boolean> {
    return changeRouting(this.#db, event, work, () => this.#feed.announce("routing"));
  }
}

/** Upstreams and nodes share names in records and logs. */
async function isTaken(tx: Database, name: string): Promise<boolean> {
  const taken: unknown[] = await tx`
    SELECT name FROM nodes WHERE name = ${name} UNION ALL SELECT name FROM upstreams WHERE name = ${name}`;
  return taken.length > 0;
}

/** Returns whether the node's facts changed. Undefined if there is no such node. */
async function writeSeen(tx: Database, nodeId: string, seen: NodeSeen): Promise<boolean | undefined> {
  const announced = JSON.stringify(seen.announced);
  const servers = JSON.stringify(seen.toolServers);
  const [before]: { announced: string; tool_servers: string; version: string | null }[] = await tx`
    SELECT announced, tool_servers, version FROM nodes WHERE id = ${nodeId}`;
  if (!before) return undefined;
  await tx`
    UPDATE nodes SET announced = ${announced}, tool_servers = ${servers}, version = ${seen.version},
      last_seen_at = ${seen.at} WHERE id = ${nodeId}`;
  return before.announced !== announced || before.tool_servers !== servers || before.version !== seen.version;
}
