// People who turned off mail notifications.
import type { NotificationMutes } from "../../../domain/notifications/mutes.ts";
import type { Database } from "../../sql/database.ts";
import { added, available } from "../../sql/outage.ts";

export class SqlNotificationMutes implements NotificationMutes {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async isMuted(personId: string): Promise<boolean> {
    const found: unknown[] = await available(
      this.#db`SELECT person_id FROM notice_mutes WHERE person_id = ${personId}`,
    );
    return found.length > 0;
  }

  async setMuted(personId: string, isMuted: boolean): Promise<void> {
    await added(this.#db, (tx) =>
      isMuted
        ? tx`INSERT INTO notice_mutes ${tx({ person_id: personId })} ON CONFLICT (person_id) DO NOTHING`
        : tx`DELETE FROM notice_mutes WHERE person_id = ${personId}`,
    );
  }
}
