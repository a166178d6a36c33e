// Deletes responses, their events and conversations once their time has come, a few at a time.
import type { Database } from "../../sql/database.ts";

/** Notes of items that are deleted in the time of one row with content. */
const notesToOne = 25;

/** Gives about how many rows of content were deleted, at most `limit`; fewer: there are no more. */
export async function deleteExpired(tx: Database, nowSeconds: number, limit: number): Promise<number> {
  let deleted = 0;
  for (const deleteSome of [endedEvents, expiredResponses, expiredConversations]) {
    if (deleted < limit) deleted += await deleteSome(tx, nowSeconds, limit - deleted);
  }
  return deleted;
}

/** Events go some time after their response has ended. */
async function endedEvents(tx: Database, nowSeconds: number, limit: number): Promise<number> {
  const ids = idsOf(
    await tx`
      SELECT id FROM stored_responses WHERE events_until <= ${nowSeconds} ORDER BY events_until LIMIT ${limit}`,
  );
  if (ids.length === 0) return 0;
  const gone: unknown[] = await tx`
    DELETE FROM response_events WHERE (response_id, first_number) IN (
      SELECT response_id, first_number FROM response_events WHERE response_id IN ${tx(ids)} LIMIT ${limit}
    ) RETURNING first_number`;
  if (gone.length === limit) return limit;
  await tx`UPDATE stored_responses SET events_until = NULL WHERE id IN ${tx(ids)}`;
  return ids.length === limit ? limit : gone.length;
}

/** Where their items are found goes first: there may be thousands of them to one. */
async function expiredResponses(tx: Database, nowSeconds: number, limit: number): Promise<number> {
  const ids = idsOf(
    await tx`SELECT id FROM stored_responses WHERE expires_at <= ${nowSeconds} ORDER BY expires_at LIMIT ${limit}`,
  );
  if (ids.length === 0) return 0;
  const most = limit * notesToOne;
  const notes: unknown[] = await tx`
    DELETE FROM stored_response_items WHERE (account_id, environment, item, created_at, response_id) IN (
      SELECT account_id, environment, item, created_at, response_id FROM stored_response_items
      WHERE response_id IN ${tx(ids)} LIMIT ${most}
    ) RETURNING response_id`;
  if (notes.length === most) return limit;
  await tx`DELETE FROM response_events WHERE response_id IN ${tx(ids)}`;
  await tx`DELETE FROM stored_responses WHERE id IN ${tx(ids)}`;
  return ids.length;
}

/**
 * Their items first, and a conversation once it has none left. One that somebody adds to at this moment has a later time
 * once that is done, and stays.
 */
async function expiredConversations(tx: Database, nowSeconds: number, limit: number): Promise<number> {
  const ids = idsOf(
    await tx`SELECT id FROM conversations WHERE expires_at <= ${nowSeconds} ORDER BY expires_at LIMIT ${limit}`,
  );
  if (ids.length === 0) return 0;
  const items: unknown[] = await tx`
    DELETE FROM conversation_items WHERE (conversation_id, place) IN (
      SELECT conversation_id, place FROM conversation_items WHERE conversation_id IN ${tx(ids)} LIMIT ${limit}
    ) RETURNING place`;
  if (items.length === limit) return limit;
  await tx`DELETE FROM conversations WHERE id IN ${tx(ids)} AND expires_at <= ${nowSeconds}`;
  return Math.min(limit, items.length + ids.length);
}

function idsOf(rows: readonly { id: string }[]): string[] {
  return rows.map(({ id }) => id);
}
