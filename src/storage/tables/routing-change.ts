// The one way in which upstreams, nodes and models change: the work, its audit event and the raised revision, or nothing.
import type { AuditEvent } from "../../domain/audit.ts";
import type { Database } from "../sql/database.ts";
import { confirmCommits } from "../sql/durable-commits.ts";
import { insertAuditEvent } from "./audit-log.ts";
import { whileActive } from "./credential-change.ts";
import { raiseRevision } from "./revisions.ts";

/**
 * `work` gives whether it wrote anything, and so does this; `onChanged` is called as soon as it is visible to others, while
 * the disk is still asked to keep it. No credential changes by it, so no cache has to forget one.
 * Throws as `whileActive` does.
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
  // A power cut must not undo what was answered: a price that was set, a server that was drained.
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
