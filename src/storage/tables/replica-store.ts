// Which processes share this database: each row is one of them, and says when it was last there.
import { type Replica, type ReplicaStore, replicaGoneSeconds } from "../../domain/replica.ts";
import { adding, type Database, databaseSeconds } from "../sql/database.ts";
import { available } from "../sql/outage.ts";

interface ReplicaRow {
  id: string;
  advertise_url: string | null;
  version: string;
  started_at: number | string;
  seen_at: number | string;
}

/** One that only paused for a while finds its row again, and with it since when it runs. */
const keptSeconds = 600;

export class SqlReplicaStore implements ReplicaStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** All times are the database's: those of the processes may differ, and would make others look dead. */
  async beat(replica: Pick<Replica, "id" | "advertiseUrl" | "version">, alone: boolean): Promise<Replica[]> {
    const { id, advertiseUrl, version } = replica;
    const rows: ReplicaRow[] = await available(
      adding(this.#db, async (tx) => {
        const now = () => databaseSeconds(tx);
        await tx`
          INSERT INTO replicas (id, advertise_url, version, started_at, seen_at)
          VALUES (${id}, ${advertiseUrl}, ${version}, ${now()}, ${now()})
          ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`;
        const gone = alone ? tx`id <> ${id}` : tx`seen_at < ${now()} - ${keptSeconds}`;
        await tx`DELETE FROM replicas WHERE ${gone}`;
        return await tx`
          SELECT * FROM replicas WHERE seen_at > ${now()} - ${replicaGoneSeconds} ORDER BY started_at, id`;
      }),
    );
    return rows.map(fromRow);
  }

  async remove(id: string): Promise<void> {
    await available(adding(this.#db, (tx) => tx`DELETE FROM replicas WHERE id = ${id}`));
  }
}

function fromRow(row: ReplicaRow): Replica {
  return {
    id: row.id,
    advertiseUrl: row.advertise_url,
    version: row.version,
    startedAt: Number(row.started_at),
    seenAt: Number(row.seen_at),
  };
}
