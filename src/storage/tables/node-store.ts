// Nodes, the tokens that let them join, and which process holds whose connection, in the database.
import type { AuditEvent } from "../../domain/audit.ts";
import type { ChangeFeed, ChangeTopic } from "../../domain/change-feed.ts";
import {
  mostNodes,
  type NodeChange,
  type NodeConnection,
  type NodeJoinToken,
  type NodeRecord,
  type NodeSeen,
  type NodeStore,
} from "../../domain/models/node.ts";
import { replicaGoneSeconds } from "../../domain/replica.ts";
import { adding, type Database, databaseSeconds, writing } from "../sql/database.ts";
import { syncCommits } from "../sql/durable-commits.ts";
import { available } from "../sql/outage.ts";
import { insertAuditEvent } from "./audit-log.ts";
import { whileActive } from "./credential-change.ts";
import { raiseRoutingRevision } from "./routing-revision.ts";

interface NodeRow {
  id: string;
  name: string;
  public_key: string;
  models: string;
  environments: string;
  max_concurrency: number | string | null;
  announced: string;
  version: string | null;
  created_at: number | string;
  last_seen_at: number | string | null;
}

interface TokenRow {
  id: string;
  digest: string;
  last4: string;
  /** null: nothing. */
  models: string | null;
  environments: string;
  created_by: string | null;
  created_at: number | string;
  expires_at: number | string;
  used_at: number | string | null;
  node_id: string | null;
}

interface ConnectionRow {
  node_id: string;
  replica_id: string;
  connection_id: string;
  client_address: string;
  connected_at: number | string;
  advertise_url: string | null;
}

/** Those that let nobody in any more are shown for as long. */
const tokensKeptSeconds = 604_800;
const mostTokensListed = 1_000;

export class SqlNodeStore implements NodeStore {
  readonly #db: Database;
  readonly #feed: Pick<ChangeFeed, "announce">;

  constructor(db: Database, feed: Pick<ChangeFeed, "announce">) {
    this.#db = db;
    this.#feed = feed;
  }

  async listNodes(): Promise<NodeRecord[]> {
    const rows: NodeRow[] = await available(this.#db`SELECT * FROM nodes ORDER BY name`);
    return rows.map(fromRow);
  }

  async listConnections(): Promise<NodeConnection[]> {
    const rows: ConnectionRow[] = await available(this.#db`
      SELECT node_id, replica_id, connection_id, client_address, connected_at, advertise_url
      FROM node_connections JOIN replicas ON replicas.id = node_connections.replica_id
      WHERE replicas.seen_at > ${databaseSeconds(this.#db)} - ${replicaGoneSeconds} ORDER BY node_id`);
    return rows.map((row) => ({
      nodeId: row.node_id,
      replicaId: row.replica_id,
      connectionId: row.connection_id,
      clientAddress: row.client_address,
      connectedAt: Number(row.connected_at),
      advertiseUrl: row.advertise_url,
    }));
  }

  async findNode(id: string): Promise<NodeRecord | undefined> {
    const [row]: NodeRow[] = await available(this.#db`SELECT * FROM nodes WHERE id = ${id}`);
    return row && fromRow(row);
  }

  async enrol(
    node: NodeRecord,
    { digests, at, isFree }: Parameters<NodeStore["enrol"]>[1],
    event: (token: NodeJoinToken) => AuditEvent,
  ): ReturnType<NodeStore["enrol"]> {
    const outcome = await available(
      writing(this.#db, async (tx): Promise<Awaited<ReturnType<NodeStore["enrol"]>>> => {
        const [row]: TokenRow[] = await tx`SELECT * FROM node_join_tokens WHERE digest IN ${tx([...digests])}`;
        if (!row) return "unknown";
        if (row.used_at !== null) return "used";
        if (Number(row.expires_at) <= at) return "expired";
        const token = tokenFromRow(row);
        if (!isFree || (await isTaken(tx, node.name))) return "name_taken";
        const [count] = await tx`SELECT count(*) AS nodes FROM nodes`;
        if (Number(count?.nodes ?? 0) >= mostNodes) return "too_many";
        const { approvedModels, environments } = token;
        const added: unknown[] = await tx`
          INSERT INTO nodes ${tx(toRow({ ...node, approvedModels, environments }))}
          ON CONFLICT DO NOTHING RETURNING id`;
        // Its key is that of another node.
        if (added.length === 0) return "unknown";
        await tx`UPDATE node_join_tokens SET used_at = ${at}, node_id = ${node.id} WHERE id = ${token.id}`;
        // An earlier node of the name may have been drained as it was deleted.
        await tx`DELETE FROM drained_upstreams WHERE name = ${node.name}`;
        await insertAuditEvent(tx, event(token));
        await raiseRoutingRevision(tx);
        return "enrolled";
      }),
    );
    if (outcome === "enrolled") await this.#told("routing");
    return outcome;
  }

  changeNode(id: string, change: NodeChange, event: AuditEvent): Promise<boolean> {
    return this.#change(event, "routing", async (tx) => {
      const [before]: NodeRow[] = await tx`SELECT * FROM nodes WHERE id = ${id}`;
      if (!before) return false;
      const { draining, name = before.name, ...settings } = change;
      if (name !== before.name && (await isTaken(tx, name))) return false;
      const row = toRow({ ...fromRow(before), ...settings, name });
      await tx`
        UPDATE nodes SET name = ${row.name}, models = ${row.models}, environments = ${row.environments},
          max_concurrency = ${row.max_concurrency}
        WHERE id = ${id}`;
      if (name !== before.name) {
        // Drained it stays, under the name that it has now.
        await tx`DELETE FROM drained_upstreams WHERE name = ${name}`;
        await tx`UPDATE drained_upstreams SET name = ${name} WHERE name = ${before.name}`;
      }
      if (draining === false) await tx`DELETE FROM drained_upstreams WHERE name = ${name}`;
      if (draining === true) {
        await tx`
          INSERT INTO drained_upstreams (name, since) VALUES (${name}, ${event.at}) ON CONFLICT (name) DO NOTHING`;
      }
      return true;
    });
  }

  deleteNode(id: string, event: AuditEvent): Promise<boolean> {
    return this.#change(event, "routing", async (tx) => {
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
      await tx`INSERT INTO node_join_tokens ${tx(tokenToRow(token))}`;
      await insertAuditEvent(tx, event);
    });
  }

  async listTokens(): Promise<NodeJoinToken[]> {
    const rows: TokenRow[] = await available(this.#db`
      SELECT * FROM node_join_tokens ORDER BY id DESC LIMIT ${mostTokensListed}`);
    return rows.map(tokenFromRow);
  }

  deleteToken(id: string, event: AuditEvent): Promise<boolean> {
    // No cache knows of tokens: each is looked up.
    return this.#change(event, undefined, async (tx) => {
      const deleted: unknown[] = await tx`DELETE FROM node_join_tokens WHERE id = ${id} RETURNING id`;
      return deleted.length > 0;
    });
  }

  async connected(connection: Omit<NodeConnection, "advertiseUrl">, seen: NodeSeen): Promise<boolean> {
    const { nodeId, replicaId, connectionId, clientAddress, connectedAt } = connection;
    const known = await available(
      writing(this.#db, async (tx) => {
        if ((await writeSeen(tx, nodeId, seen)) === undefined) return false;
        await tx`
          INSERT INTO node_connections (node_id, replica_id, connection_id, client_address, connected_at)
          VALUES (${nodeId}, ${replicaId}, ${connectionId}, ${clientAddress}, ${connectedAt})
          ON CONFLICT (node_id) DO UPDATE SET replica_id = excluded.replica_id,
            connection_id = excluded.connection_id, client_address = excluded.client_address,
            connected_at = excluded.connected_at`;
        await raiseRoutingRevision(tx);
        return true;
      }),
    );
    if (known) this.#feed.announce("connections");
    return known;
  }

  async disconnected(nodeId: string, connectionId: string, at: number): Promise<void> {
    const gone = await available(
      writing(this.#db, async (tx) => {
        const deleted: unknown[] = await tx`
          DELETE FROM node_connections WHERE node_id = ${nodeId} AND connection_id = ${connectionId} RETURNING node_id`;
        if (deleted.length === 0) return false;
        await tx`UPDATE nodes SET last_seen_at = ${at} WHERE id = ${nodeId}`;
        await raiseRoutingRevision(tx);
        return true;
      }),
    );
    if (gone) this.#feed.announce("connections");
  }

  async seen(nodeId: string, seen: NodeSeen): Promise<void> {
    const changed = await available(
      writing(this.#db, async (tx) => {
        const isNew = await writeSeen(tx, nodeId, seen);
        if (isNew) await raiseRoutingRevision(tx);
        return isNew;
      }),
    );
    if (changed) this.#feed.announce("routing");
  }

  async touch(nodeIds: readonly string[], at: number): Promise<void> {
    if (nodeIds.length === 0) return;
    await available(
      adding(this.#db, (tx) => tx`UPDATE nodes SET last_seen_at = ${at} WHERE id IN ${tx([...nodeIds])}`),
    );
  }

  /** `work` gives whether it wrote anything. `topic`: what others have to look at again. */
  async #change(
    event: AuditEvent,
    topic: ChangeTopic | undefined,
    work: (tx: Database) => Promise<boolean>,
  ): Promise<boolean> {
    const changed = await whileActive(this.#db, event, async (tx) => {
      const done = await work(tx);
      if (!done) return false;
      await insertAuditEvent(tx, event);
      if (topic) await raiseRoutingRevision(tx);
      return true;
    });
    if (changed) await this.#told(topic);
    return changed;
  }

  /** A power cut must not let a node in again that was answered as deleted. Where the disk cannot be asked, it stands. */
  async #told(topic: ChangeTopic | undefined): Promise<void> {
    if (topic) this.#feed.announce(topic);
    await syncCommits(this.#db).catch(() => {});
  }
}

/** Records and logs name upstreams and nodes alike. */
async function isTaken(tx: Database, name: string): Promise<boolean> {
  const taken: unknown[] = await tx`
    SELECT name FROM nodes WHERE name = ${name} UNION ALL SELECT name FROM upstreams WHERE name = ${name}`;
  return taken.length > 0;
}

/** Whether it says something new of itself; undefined where there is no such node. */
async function writeSeen(tx: Database, nodeId: string, seen: NodeSeen): Promise<boolean | undefined> {
  const announced = JSON.stringify(seen.announced);
  const [before]: NodeRow[] = await tx`SELECT * FROM nodes WHERE id = ${nodeId}`;
  if (!before) return undefined;
  await tx`
    UPDATE nodes SET announced = ${announced}, version = ${seen.version}, last_seen_at = ${seen.at} WHERE id = ${nodeId}`;
  return before.announced !== announced || before.version !== seen.version;
}

function toRow(node: NodeRecord): NodeRow {
  return {
    id: node.id,
    name: node.name,
    public_key: node.publicKey,
    models: JSON.stringify(node.approvedModels),
    environments: JSON.stringify(node.environments),
    max_concurrency: node.maxConcurrency,
    announced: JSON.stringify(node.announced),
    version: node.version,
    created_at: node.createdAt,
    last_seen_at: node.lastSeenAt,
  };
}

function fromRow(row: NodeRow): NodeRecord {
  return {
    id: row.id,
    name: row.name,
    publicKey: row.public_key,
    approvedModels: JSON.parse(row.models) as NodeRecord["approvedModels"],
    environments: JSON.parse(row.environments) as NodeRecord["environments"],
    maxConcurrency: numberOrNull(row.max_concurrency),
    announced: JSON.parse(row.announced) as NodeRecord["announced"],
    version: row.version,
    createdAt: Number(row.created_at),
    lastSeenAt: numberOrNull(row.last_seen_at),
  };
}

function tokenToRow(token: NodeJoinToken): TokenRow {
  return {
    id: token.id,
    digest: token.digest,
    last4: token.last4,
    models: token.approvedModels.length === 0 ? null : JSON.stringify(token.approvedModels),
    environments: JSON.stringify(token.environments),
    created_by: token.createdBy,
    created_at: token.createdAt,
    expires_at: token.expiresAt,
    used_at: token.usedAt,
    node_id: token.nodeId,
  };
}

function tokenFromRow(row: TokenRow): NodeJoinToken {
  return {
    id: row.id,
    digest: row.digest,
    last4: row.last4,
    approvedModels: row.models === null ? [] : (JSON.parse(row.models) as NodeJoinToken["approvedModels"]),
    environments: JSON.parse(row.environments) as NodeJoinToken["environments"],
    createdBy: row.created_by,
    createdAt: Number(row.created_at),
    expiresAt: Number(row.expires_at),
    usedAt: numberOrNull(row.used_at),
    nodeId: row.node_id,
  };
}

function numberOrNull(value: number | string | null): number | null {
  return value === null ? null : Number(value);
}
