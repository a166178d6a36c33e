// Changes upstreams, nodes and models: the work, its audit event and the raised revision in one transaction.
import type { AuditEvent } from "../../domain/audit.ts";
import type { Database } from "../sql/database.ts";
import { confirmCommits } from "../sql/durable-commits.ts";
import { insertAuditEvent } from "./audit-log.ts";
import { whileActive } from "./credential-change.ts";
import { raiseRevision } from "./revisions.ts";

/**
 * Runs `work`, and returns its result: whether it wrote anything. `onChanged` is called when the change is visible,
 * before the disk sync. Caches of credentials are not notified. Throws the same errors as `whileActive`.
 */
export async function changeRouting(
  db: Database,
  event: AuditEvent,
  work: (tx: Database) => Promise<boolean>,
  onChanged = () => {},
): Promise<boolean> {
  const changed = await whileActive(db, event, async (tx) => {
    if (!(await work(tx))) return false;
    await insertAuditEvent(tx, event);
    await raiseRevision(tx, "routing");
    return true;
  });
  // A power cut must not undo a confirmed change, such as a price or a drained server.
  if (changed) {
    onChanged();
    await confirmCommits(db);
  }
  return changed;
}

/** `since`: Unix seconds. */
export async function setDrained(tx: Database, name: string, draining: boolean, since: number): Promise<void> {
  if (draining) {
    await tx`INSERT INTO drained_upstreams (name, since) VALUES (${name}, ${since}) ON CONFLICT (name) DO NOTHING`;
  } else await tx`DELETE FROM drained_upstreams WHERE name = ${name}`;
}
