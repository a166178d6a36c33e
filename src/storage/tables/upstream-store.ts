// Model servers that operators added, and the names of those that are drained, in the database; keys arrive sealed.
import type { AuditEvent } from "../../domain/audit.ts";
import type { StoredUpstream, UpstreamChange, UpstreamStore } from "../../domain/models/upstream.ts";
import type { Database } from "../sql/database.ts";
import { syncCommits } from "../sql/durable-commits.ts";
import { available } from "../sql/outage.ts";
import { insertAuditEvent } from "./audit-log.ts";
import { whileActive } from "./credential-change.ts";
import { raiseRoutingRevision } from "./routing-revision.ts";

interface UpstreamRow {
  name: string;
  url: string;
  sealed_api_key: string | null;
  settings: string;
  created_at: number | string;
}

/** What the column `settings` holds. */
type Settings = Pick<StoredUpstream, "discover" | "environments" | "timeoutSeconds" | "idleSeconds" | "maxConcurrency">;

export class SqlUpstreamStore implements UpstreamStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async listUpstreams(): Promise<StoredUpstream[]> {
    const rows: UpstreamRow[] = await available(this.#db`SELECT * FROM upstreams ORDER BY name`);
    return rows.map(fromRow);
  }

  async listDrained(): Promise<string[]> {
    const rows: { name: string }[] = await available(this.#db`SELECT name FROM drained_upstreams ORDER BY name`);
    return rows.map((row) => row.name);
  }

  insertUpstream(upstream: StoredUpstream, event: AuditEvent): Promise<boolean> {
    return this.#change(event, async (tx) => {
      const nodes: unknown[] = await tx`SELECT id FROM nodes WHERE name = ${upstream.name}`;
      if (nodes.length > 0) return false;
      const added: unknown[] = await tx`
        INSERT INTO upstreams ${tx(toRow(upstream))} ON CONFLICT (name) DO NOTHING RETURNING name`;
      if (added.length === 0) return false;
      await tx`DELETE FROM drained_upstreams WHERE name = ${upstream.name}`;
      return true;
    });
  }

  changeUpstream(name: string, { upstream, draining }: UpstreamChange, event: AuditEvent): Promise<boolean> {
    return this.#change(event, async (tx) => {
      if (upstream) {
        const row = toRow(upstream);
        const changed: unknown[] = await tx`
          UPDATE upstreams SET url = ${row.url}, sealed_api_key = ${row.sealed_api_key}, settings = ${row.settings}
          WHERE name = ${name} RETURNING name`;
        if (changed.length === 0) return false;
      }
      if (draining === false) await tx`DELETE FROM drained_upstreams WHERE name = ${name}`;
      if (draining === true) {
        await tx`
          INSERT INTO drained_upstreams (name, since) VALUES (${name}, ${event.at}) ON CONFLICT (name) DO NOTHING`;
      }
      return true;
    });
  }

  deleteUpstream(name: string, keep: { draining: boolean }, event: AuditEvent): Promise<boolean> {
    return this.#change(event, async (tx) => {
      const deleted: unknown[] = await tx`DELETE FROM upstreams WHERE name = ${name} RETURNING name`;
      if (deleted.length === 0) return false;
      if (!keep.draining) await tx`DELETE FROM drained_upstreams WHERE name = ${name}`;
      return true;
    });
  }

  async routingRevision(): Promise<number> {
    const [row]: { revision: number | string }[] = await available(
      this.#db`SELECT revision FROM credential_revision WHERE id = 2`,
    );
    return Number(row?.revision);
  }

  /** `work` gives whether it wrote anything. No credential changes by it, so no cache has to forget one. */
  async #change(event: AuditEvent, work: (tx: Database) => Promise<boolean>): Promise<boolean> {
    const changed = await whileActive(this.#db, event, async (tx) => {
      const done = await work(tx);
      if (!done) return false;
      await insertAuditEvent(tx, event);
      await raiseRoutingRevision(tx);
      return true;
    });
    // What was answered as drained must not be asked again after a power cut. Where the disk cannot be asked, it stands.
    if (changed) await syncCommits(this.#db).catch(() => {});
    return changed;
  }
}

function toRow(upstream: StoredUpstream): UpstreamRow {
  const { name, url, sealedApiKey, createdAt } = upstream;
  const { discover, environments, timeoutSeconds, idleSeconds, maxConcurrency } = upstream;
  const settings: Settings = { discover, environments, timeoutSeconds, idleSeconds, maxConcurrency };
  return { name, url, sealed_api_key: sealedApiKey, settings: JSON.stringify(settings), created_at: createdAt };
}

function fromRow(row: UpstreamRow): StoredUpstream {
  return {
    name: row.name,
    url: row.url,
    sealedApiKey: row.sealed_api_key,
    ...(JSON.parse(row.settings) as Settings),
    createdAt: Number(row.created_at),
  };
}
