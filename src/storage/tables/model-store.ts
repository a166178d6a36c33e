// Models that operators declared beside the configuration file, in the database.
import type { AuditEvent } from "../../domain/audit.ts";
import type { ModelSettings, ModelStore, StoredModel } from "../../domain/models/model-entry.ts";
import type { Database } from "../sql/database.ts";
import { syncCommits } from "../sql/durable-commits.ts";
import { available } from "../sql/outage.ts";
import { insertAuditEvent } from "./audit-log.ts";
import { whileActive } from "./credential-change.ts";
import { raiseRoutingRevision } from "./routing-revision.ts";

interface ModelRow {
  id: string;
  settings: string;
  created_at: number | string;
}

export class SqlModelStore implements ModelStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async listModels(): Promise<StoredModel[]> {
    const rows: ModelRow[] = await available(this.#db`SELECT * FROM models ORDER BY id`);
    return rows.map(({ id, settings, created_at: createdAt }) => ({
      id,
      ...(JSON.parse(settings) as ModelSettings),
      createdAt: Number(createdAt),
    }));
  }

  insertModel({ id, createdAt, ...settings }: StoredModel, event: AuditEvent): Promise<boolean> {
    const row: ModelRow = { id, settings: JSON.stringify(settings), created_at: createdAt };
    return this.#change(event, (tx) => tx`INSERT INTO models ${tx(row)} ON CONFLICT (id) DO NOTHING RETURNING id`);
  }

  changeModel({ id, createdAt: _, ...settings }: StoredModel, event: AuditEvent): Promise<boolean> {
    const text = JSON.stringify(settings);
    return this.#change(event, (tx) => tx`UPDATE models SET settings = ${text} WHERE id = ${id} RETURNING id`);
  }

  deleteModel(id: string, event: AuditEvent): Promise<boolean> {
    return this.#change(event, (tx) => tx`DELETE FROM models WHERE id = ${id} RETURNING id`);
  }

  /** `work` gives the rows that it wrote. No credential changes by it, so no cache has to forget one. */
  async #change(event: AuditEvent, work: (tx: Database) => PromiseLike<unknown[]>): Promise<boolean> {
    const changed = await whileActive(this.#db, event, async (tx) => {
      if ((await work(tx)).length === 0) return false;
      await insertAuditEvent(tx, event);
      await raiseRoutingRevision(tx);
      return true;
    });
    // A price that was answered as set must not be gone after a power cut. Where the disk cannot be asked, it stands.
    if (changed) await syncCommits(this.#db).catch(() => {});
    return changed;
  }
}
