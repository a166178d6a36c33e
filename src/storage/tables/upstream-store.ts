// Upstreams that operators added, and names of drained upstreams, in the database. Keys arrive sealed.
import type { AuditEvent } from "../../domain/audit.ts";
import type { StoredUpstream, UpstreamChange, UpstreamStore } from "../../domain/models/upstream.ts";
import { speechOf, type UpstreamSpeech, usualSpeech } from "../../domain/models/upstream-speech.ts";
import type { Database } from "../sql/database.ts";
import { available } from "../sql/outage.ts";
import { integer, json, table, text } from "../sql/table.ts";
import { readRevision } from "./revisions.ts";
import { changeRouting, setDrained } from "./routing-change.ts";

/** The content of the column `settings`. */
type Settings = Pick<
  StoredUpstream,
  "discover" | "local" | "environments" | "timeoutSeconds" | "idleSeconds" | "maxConcurrency" | keyof UpstreamSpeech
>;

const upstreams = table<Omit<StoredUpstream, keyof Settings> & { settings: Settings }>({
  name: text,
  url: text,
  sealedApiKey: text,
  settings: json,
  createdAt: integer,
});

/** Default values of members that older rows lack. */
const unsaid = { ...usualSpeech, local: false };

export class SqlUpstreamStore implements UpstreamStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async listUpstreams(): Promise<StoredUpstream[]> {
    const stored = await available(upstreams.all(this.#db`SELECT * FROM upstreams ORDER BY name`));
    return stored.map(({ settings, ...upstream }) => ({ ...upstream, ...unsaid, ...settings }));
  }

  async listDrained(): Promise<string[]> {
    const rows: { name: string }[] = await available(this.#db`SELECT name FROM drained_upstreams ORDER BY name`);
    return rows.map((row) => row.name);
  }

  insertUpstream(upstream: StoredUpstream, event: AuditEvent): Promise<boolean> {
    return changeRouting(this.#db, event, async (tx) => {
      const nodes: unknown[] = await tx`SELECT id FROM nodes WHERE name = ${upstream.name}`;
      if (nodes.length > 0) return false;
      const added: unknown[] = await tx`
        INSERT INTO upstreams ${tx(upstreams.row(inColumns(upstream)))} ON CONFLICT (name) DO NOTHING RETURNING name`;
      if (added.length === 0) return false;
      await tx`DELETE FROM drained_upstreams WHERE name = ${upstream.name}`;
      return true;
    });
  }

  changeUpstream(name: string, { upstream, draining }: UpstreamChange, event: AuditEvent): Promise<boolean> {
    return changeRouting(this.#db, event, async (tx) => {
      if (upstream) {
        const row = upstreams.part(inColumns(upstream), "url", "sealedApiKey", "settings");
        const changed: unknown[] = await tx`UPDATE upstreams SET ${tx(row)} WHERE name = ${name} RETURNING name`;
        if (changed.length === 0) return false;
      }
      if (draining !== undefined) await setDrained(tx, name, draining, event.at);
      return true;
    });
  }

  deleteUpstream(name: string, keep: { draining: boolean }, event: AuditEvent): Promise<boolean> {
    return changeRouting(this.#db, event, async (tx) => {
      const deleted: unknown[] = await tx`DELETE FROM upstreams WHERE name = ${name} RETURNING name`;
      if (deleted.length === 0) return false;
      if (!keep.draining) await tx`DELETE FROM drained_upstreams WHERE name = ${name}`;
      return true;
    });
  }

  routingRevision(): Promise<number> {
    return available(readRevision(this.#db, "routing"));
  }
}

function inColumns(upstream: StoredUpstream) {
  const { discover, local, environments, timeoutSeconds, idleSeconds, maxConcurrency } = upstream;
  const own = { discover, local, environments, timeoutSeconds, idleSeconds, maxConcurrency };
  const settings: Settings = { ...own, ...speechOf(upstream) };
  return { ...upstream, settings };
}
