// Ends a person's sessions and command-line logins inside a transaction.

import type { AuditEvent } from "../../../domain/audit.ts";
import { commandLineAppId } from "../../../domain/people/app.ts";
import type { Database } from "../../sql/database.ts";
import { insertAuditEvent } from "../audit-log.ts";
import { endEvent, endGrantsFor } from "./grants.ts";

export interface SignedOut {
  sessions: number;
  /** The number of ended command-line logins, which caches of credentials must drop. */
  logins: number;
}

/** `exceptId` is the session or login that stays. `event` is that of the change that causes the sign-out. */
export async function signOut(
  tx: Database,
  { personId, exceptId = "" }: { personId: string; exceptId?: string },
  event: AuditEvent,
): Promise<SignedOut> {
  const sessions: unknown[] = await tx`
    DELETE FROM sessions WHERE person_id = ${personId} AND id <> ${exceptId} RETURNING id`;
  const logins = await endGrantsFor(tx, { personId, appId: commandLineAppId, exceptId }, event.at);
  for (const { id, accountId } of logins)
    await insertAuditEvent(tx, endEvent({ ...event, accountId }, id, "signed_out"));
  return { sessions: sessions.length, logins: logins.length };
}
