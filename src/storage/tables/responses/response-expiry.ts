// Deletes expired responses, their events and conversations, a few at a time.
import type { Database } from "../../sql/database.ts";

/** Number of item references that are deleted in the time of one row with content. */
const notesToOne = 25;

/**
 * Returns the approximate number of deleted rows with content, at most `limit`. A lower number means that none is left.
 */
export async function deleteExpired(tx: Database, nowSeconds: number, limit: number): Promise<number> {
  let deleted = 0;
  for (const deleteSome of [endedEvents, expiredResponses, expiredConversations]) {
    if (deleted < limit) deleted += await deleteSome(tx, nowSeconds, limit - deleted);
  }
  return deleted;
}

/** Deletes events some time after the end of their response. */
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

/** Deletes the references to a response's items first, because a response may have thousands. */
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
 * Deletes items first, then empty conversations. A conversation that is extended at this moment gets a later expiry and
 * stays.
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
