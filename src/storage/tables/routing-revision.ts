// The number by which other processes see that upstreams or nodes were changed.
import type { Database } from "../sql/database.ts";

/** In the transaction of the change. */
export async function raiseRoutingRevision(tx: Database): Promise<void> {
  await tx`UPDATE credential_revision SET revision = revision + 1 WHERE id = 2`;
}
