// Current faults in the database. Of several processes that see a fault, one reports it.
import type { Incident, IncidentStore } from "../../../domain/notifications/incident.ts";
import type { Database } from "../../sql/database.ts";
import { added, available } from "../../sql/outage.ts";
import { incidents } from "./notification-rows.ts";

export class SqlIncidentStore implements IncidentStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  list(): Promise<Incident[]> {
    return available(incidents.all(this.#db`SELECT * FROM incidents ORDER BY subject`));
  }

  async begin(incident: Incident): Promise<boolean> {
    const begun: unknown[] = await added(
      this.#db,
      (tx) =>
        tx`INSERT INTO incidents ${tx(incidents.row(incident))} ON CONFLICT (subject) DO NOTHING RETURNING subject`,
    );
    return begun.length > 0;
  }

  async adopt(subject: string, from: string, to: string): Promise<void> {
    await added(
      this.#db,
      (tx) => tx`UPDATE incidents SET replica_id = ${to} WHERE subject = ${subject} AND replica_id = ${from}`,
    );
  }

  async end(subject: string, replicaId: string): Promise<boolean> {
    const ended: unknown[] = await added(
      this.#db,
      (tx) => tx`DELETE FROM incidents WHERE subject = ${subject} AND replica_id = ${replicaId} RETURNING subject`,
    );
    return ended.length > 0;
  }
}
