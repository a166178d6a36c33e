// Revision numbers by which processes notice changes of credentials, or of upstreams, nodes and models.
import type { Database } from "../sql/database.ts";

/** Rows of `credential_revision`. */
const ids = { credentials: 1, routing: 2 } as const;

/** Raises a revision number. Call it in the transaction of the change. */
export async function raiseRevision(tx: Database, of: keyof typeof ids): Promise<void> {
  await tx`UPDATE credential_revision SET revision = revision + 1 WHERE id = ${ids[of]}`;
}

export async function readRevision(db: Database, of: keyof typeof ids): Promise<number> {
  const [row]: { revision: number | string }[] = await db`
    SELECT revision FROM credential_revision WHERE id = ${ids[of]}`;
  return Number(row?.revision);
}
