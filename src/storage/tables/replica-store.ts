// The processes that share this database: a row for each, with its last heartbeat.
import { type Replica, type ReplicaStore, replicaGoneSeconds } from "../../domain/replica.ts";
import { type Database, databaseSeconds } from "../sql/database.ts";
import { added } from "../sql/outage.ts";
import { integer, json, table, text } from "../sql/table.ts";

const replicas = table<Replica>({
  id: text,
  advertiseUrl: text,
  version: text,
  startedAt: integer,
  seenAt: integer,
  attempts: { write: (reports) => JSON.stringify(reports), read: (value) => (value == null ? null : json.read(value)) },
});

/** Seconds to keep the row of a dead process. A process that only paused finds its row and its start time again. */
const keptSeconds = 600;

export class SqlReplicaStore implements ReplicaStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** The times are by the database's clock: if the clocks of processes differed, live processes would look dead. */
  async beat(replica: Omit<Replica, "startedAt" | "seenAt">, alone: boolean): Promise<Replica[]> {
    const { id, advertiseUrl, version, attempts } = replica;
    return added(this.#db, async (tx) => {
      const now = () => databaseSeconds(tx);
      await tx`
        INSERT INTO replicas (id, advertise_url, version, started_at, seen_at, attempts)
        VALUES (${id}, ${advertiseUrl}, ${version}, ${now()}, ${now()}, ${attempts ? JSON.stringify(attempts) : null})
        ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, attempts = excluded.attempts`;
      const gone = alone ? tx`id <> ${id}` : tx`seen_at < ${now()} - ${keptSeconds}`;
      const dead: { id: string }[] = await tx`DELETE FROM replicas WHERE ${gone} RETURNING id`;
      for (const row of dead) await undrain(tx, row.id);
      return await replicas.all(tx`
        SELECT * FROM replicas WHERE seen_at > ${now()} - ${replicaGoneSeconds} ORDER BY started_at, id`);
    });
  }

  /** Returns the live replicas without a heartbeat, for a process that only reads. */
  live(): Promise<Replica[]> {
    const since = this.#db`${databaseSeconds(this.#db)} - ${replicaGoneSeconds}`;
    return replicas.all(this.#db`SELECT * FROM replicas WHERE seen_at > ${since} ORDER BY started_at, id`);
  }

  async remove(id: string): Promise<void> {
    await added(this.#db, async (tx) => {
      await tx`DELETE FROM replicas WHERE id = ${id}`;
      await undrain(tx, id);
    });
  }
}

/** Deletes the mark of a drained replica, which is kept beside those of upstreams. */
async function undrain(tx: Database, id: string): Promise<void> {
  await tx`DELETE FROM drained_upstreams WHERE name = ${id}`;
}
