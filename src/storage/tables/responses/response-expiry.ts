// Deletes responses, their events and conversations once their time has come, a few at a time.
import type { Database } from "../../sql/database.ts";

/** Gives how many rows of content were deleted, at most `limit`; fewer: there are no more. */
export async function deleteExpired(tx: Database, nowSeconds: number, limit: number): Promise<number> {
  let deleted = 0;
  for (const deleteSome of [endedEvents, expiredResponses, expiredConversations]) {
    if (deleted < limit) deleted += await deleteSome(tx, nowSeconds, limit - deleted);
  }
  return deleted;
}

/** Events go some time after their response has ended. */
async function endedEvents(tx: Database, nowSeconds: number, limit: number): Promise<number> {
  const gone: unknown[] = await tx`
    DELETE FROM response_events WHERE (response_id, first_number) IN (
      SELECT e.response_id, e.first_number FROM stored_responses AS r
      JOIN response_events AS e ON e.response_id = r.id
      WHERE r.events_until <= ${nowSeconds} LIMIT ${limit}
    ) RETURNING first_number`;
  if (gone.length === limit) return limit;
  await tx`UPDATE stored_responses SET events_until = NULL WHERE events_until <= ${nowSeconds}`;
  return gone.length;
}

async function expiredResponses(tx: Database, nowSeconds: number, limit: number): Promise<number> {
  const rows: { id: string }[] = await tx`
    SELECT id FROM stored_responses WHERE expires_at <= ${nowSeconds} ORDER BY expires_at LIMIT ${limit}`;
  if (rows.length === 0) return 0;
  const ids = rows.map(({ id }) => id);
  await tx`DELETE FROM response_events WHERE response_id IN ${tx(ids)}`;
  await tx`DELETE FROM stored_response_items WHERE response_id IN ${tx(ids)}`;
  await tx`DELETE FROM stored_responses WHERE id IN ${tx(ids)}`;
  return ids.length;
}

/** Their items first, and a conversation once it has none left. */
async function expiredConversations(tx: Database, nowSeconds: number, limit: number): Promise<number> {
  const items: unknown[] = await tx`
    DELETE FROM conversation_items WHERE (conversation_id, place) IN (
      SELECT i.conversation_id, i.place FROM conversations AS c
      JOIN conversation_items AS i ON i.conversation_id = c.id
      WHERE c.expires_at <= ${nowSeconds} LIMIT ${limit}
    ) RETURNING place`;
  if (items.length === limit) return limit;
  const gone: unknown[] = await tx`
    DELETE FROM conversations WHERE id IN (
      SELECT id FROM conversations WHERE expires_at <= ${nowSeconds} ORDER BY expires_at LIMIT ${limit - items.length}
    ) RETURNING id`;
  return items.length + gone.length;
}
