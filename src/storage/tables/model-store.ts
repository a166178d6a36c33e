// Model declarations of operators besides the configuration file, in the database.
import type { AuditEvent } from "../../domain/audit.ts";
import type { ModelSettings, ModelStore, StoredModel } from "../../domain/models/model-entry.ts";
import type { Database } from "../sql/database.ts";
import { available } from "../sql/outage.ts";
import { integer, json, table, text } from "../sql/table.ts";
import { changeRouting } from "./routing-change.ts";

/** Members that rows of earlier versions do not have. */
type Later = "aliases" | "priceOf" | "policies";
const unsaid: Pick<ModelSettings, Later> = { aliases: [], priceOf: null, policies: null };
type StoredSettings = Omit<ModelSettings, Later> & Partial<Pick<ModelSettings, Later>>;

const models = table<{ id: string; settings: StoredSettings; createdAt: number }>({
  id: text,
  settings: json,
  createdAt: integer,
});

export class SqlModelStore implements ModelStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async listModels(): Promise<StoredModel[]> {
    const stored = await available(models.all(this.#db`SELECT * FROM models ORDER BY id`));
    return stored.map(({ id, settings, createdAt }) => ({ id, ...unsaid, ...settings, createdAt }));
  }

  insertModel({ id, createdAt, ...settings }: StoredModel, event: AuditEvent): Promise<boolean> {
    const row = models.row({ id, settings, createdAt });
    return this.#change(event, (tx) => tx`INSERT INTO models ${tx(row)} ON CONFLICT (id) DO NOTHING RETURNING id`);
  }

  changeModel({ id, createdAt, ...settings }: StoredModel, event: AuditEvent): Promise<boolean> {
    const row = models.part({ id, settings, createdAt }, "settings");
    return this.#change(event, (tx) => tx`UPDATE models SET ${tx(row)} WHERE id = ${id} RETURNING id`);
  }

  deleteModel(id: string, event: AuditEvent): Promise<boolean> {
    return this.#change(event, (tx) => tx`DELETE FROM models WHERE id = ${id} RETURNING id`);
  }

  /** Makes a change with its audit event. `work` returns the written rows. */
  #change(event: AuditEvent, work: (tx: Database) => PromiseLike<unknown[]>): Promise<boolean> {
    return changeRouting(this.#db, event, async (tx) => (await work(tx)).length > 0);
  }
}
