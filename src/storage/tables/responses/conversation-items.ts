// Items of conversations: appended, and read in order.
import { newItemId } from "../../../domain/models/item-id.ts";
import type {
  ChainFault,
  MayRead,
  ResponseChain,
  ResponseOwner,
  StoredItem,
  StoredResponse,
} from "../../../domain/models/stored-response.ts";
import type { Database } from "../../sql/database.ts";
import type { ResponseContent } from "./response-content.ts";
import {
  idOf,
  inPieces,
  itemKeyOf,
  outputOf,
  ownedBy,
  ownerIs,
  sealPurposes,
  sizeOf,
  turnByTurn,
} from "./response-rows.ts";

/** Maximum characters that are read at once. */
const batchSize = 4_000_000;
const rowsAtOnce = 500;

export interface AddedItems {
  conversationId: string;
  items: readonly StoredItem[];
  /** The response that adds the items; null: a client added them separately. */
  responseId: string | null;
  /** The conversation expires no sooner than this. */
  expiresAt: number;
  nowSeconds: number;
}

/**
 * Appends items and returns them as stored. An id is unique in a conversation, so an id that a model server repeats is
 * replaced. `mayBe` is an SQL condition on the conversation, `c`. Returns undefined if there is no such conversation.
 */
export async function addToConversation(
  tx: Database,
  content: ResponseContent,
  added: AddedItems,
  mayBe: PromiseLike<unknown>,
): Promise<StoredItem[] | undefined> {
  const { conversationId, items, responseId, expiresAt, nowSeconds } = added;
  // Other writers that add to this conversation wait here until this transaction is over.
  const [row]: { next_place: number | string; account_id: string; environment: string }[] = await tx`
    UPDATE conversations AS c SET next_place = next_place + ${items.length},
      expires_at = CASE WHEN expires_at < ${expiresAt} THEN ${expiresAt} ELSE expires_at END
    WHERE id = ${conversationId} AND expires_at > ${nowSeconds} AND ${mayBe}
    RETURNING next_place, account_id, environment`;
  if (!row) return undefined;
  const kept = await withIdsOfTheirOwn(tx, conversationId, items);
  const first = Number(row.next_place) - items.length;
  const of = { conversation_id: conversationId, account_id: row.account_id, environment: row.environment };
  let position = first;
  await turnByTurn(kept, async (some) => {
    const rows = some.map(({ id, item }) => {
      const key = itemKeyOf(id);
      return {
        ...of,
        place: position++,
        item: key,
        added_at: nowSeconds,
        response_id: responseId,
        size: sizeOf([item]),
        content: content.seal(sealPurposes.item(conversationId, key), item),
      };
    });
    await tx`INSERT INTO conversation_items ${tx(rows)}`;
  });
  return kept.map(({ item }) => item);
}

/** Deletes all items in steps, so that other work runs in between. */
export async function deleteItems(tx: Database, conversationId: string): Promise<void> {
  for (;;) {
    const gone: unknown[] = await tx`
      DELETE FROM conversation_items WHERE conversation_id = ${conversationId} AND place IN (
        SELECT place FROM conversation_items WHERE conversation_id = ${conversationId} LIMIT ${rowsAtOnce}
      ) RETURNING place`;
    if (gone.length < rowsAtOnce) return;
    await new Promise(setImmediate);
  }
}

/** Appends a finished response's items to its conversation, if the conversation exists. */
export async function putIntoConversation(
  tx: Database,
  content: ResponseContent,
  stored: StoredResponse,
  nowSeconds = stored.createdAt,
): Promise<void> {
  const { id, conversationId, status, input, response, expiresAt } = stored;
  if (conversationId === null || (status !== "completed" && status !== "incomplete")) return;
  const items = [...input, ...outputOf(response)];
  const added = { conversationId, items, responseId: id, expiresAt, nowSeconds };
  await addToConversation(tx, content, added, ownerIs(tx, stored));
}

async function withIdsOfTheirOwn(
  tx: Database,
  conversationId: string,
  items: readonly StoredItem[],
): Promise<{ id: string; item: StoredItem }[]> {
  const taken = new Set<string>();
  const keys = items.flatMap((item) => idOf(item) ?? []).map(itemKeyOf);
  for (const some of inPieces(keys)) {
    const rows: { item: string }[] = await tx`
      SELECT item FROM conversation_items WHERE conversation_id = ${conversationId} AND item IN ${tx(some)}`;
    for (const { item } of rows) taken.add(item);
  }
  return items.map((item) => {
    const own = idOf(item);
    if (own !== undefined && !taken.has(itemKeyOf(own))) {
      taken.add(itemKeyOf(own));
      return { id: own, item };
    }
    const id = newItemId(item["type"]);
    return { id, item: { ...item, id } };
  });
}

interface ReadOptions {
  conversationId: string;
  /** Only items before this position are read. Undefined: all items. */
  before: number | undefined;
  maxSize: number;
  mayRead: MayRead | undefined;
}

/** Returns the conversation's items in order: all, or those before a position. The conversation must exist. */
export async function readAll(
  db: Database,
  content: ResponseContent,
  { conversationId, before, maxSize, mayRead }: ReadOptions,
): Promise<ResponseChain | ChainFault> {
  const within = before === undefined ? db`` : db`AND place < ${before}`;
  const [sum]: { size: number | string | null }[] = await db`
    SELECT sum(size) AS size FROM conversation_items WHERE conversation_id = ${conversationId} ${within}`;
  const size = Number(sum?.size ?? 0);
  if (size > maxSize || mayRead?.(size) === false) return { tooLarge: true };
  const items: StoredItem[] = [];
  for (let after = -1; ; ) {
    const next: PlacedItem[] = await db`
      SELECT place, size FROM conversation_items
      WHERE conversation_id = ${conversationId} AND place > ${after} ${within} ORDER BY place LIMIT ${rowsAtOnce}`;
    const last = placesWithin(next, batchSize).at(-1);
    if (!last) return { items, size };
    const upTo = Number(last.place);
    const rows: ItemColumns[] = await db`
      SELECT item, content FROM conversation_items
      WHERE conversation_id = ${conversationId} AND place > ${after} AND place <= ${upTo} ORDER BY place`;
    for (const row of rows) {
      const item = content.open<StoredItem>(sealPurposes.item(conversationId, row.item), row.content);
      if (item) items.push(item);
    }
    after = upTo;
    await new Promise(setImmediate);
  }
}

export interface ItemColumns {
  /** The digest of the item's id, from `itemKeyOf`. */
  item: string;
  content: string;
}

interface PlacedItem {
  place: number | string;
  size: number | string;
}

/** Returns the first item, and as many following items as `maxSize` characters allow. */
export function placesWithin<Place extends PlacedItem>(found: readonly Place[], maxSize: number): Place[] {
  let size = 0;
  const within: Place[] = [];
  for (const position of found) {
    size += Number(position.size);
    if (within.length > 0 && size > maxSize) break;
    within.push(position);
  }
  return within;
}

/** Returns the conversation's items that precede a response. If the response added no item, returns all. */
export async function conversationBefore(
  db: Database,
  content: ResponseContent,
  owner: ResponseOwner,
  { conversationId, responseId, ...bounds }: Omit<ReadOptions, "before"> & { responseId: string },
  nowSeconds: number,
): Promise<ResponseChain | ChainFault> {
  const [there] = await db`
    SELECT 1 FROM conversations AS c WHERE id = ${conversationId} AND expires_at > ${nowSeconds} AND ${ownedBy(db, owner)}`;
  if (!there) return { missing: conversationId };
  const [first]: { place: number | string | null }[] = await db`
    SELECT min(place) AS place FROM conversation_items
    WHERE conversation_id = ${conversationId} AND response_id = ${responseId}`;
  const before = first?.place == null ? undefined : Number(first.place);
  return await readAll(db, content, { conversationId, before, ...bounds });
}
