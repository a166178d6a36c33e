// Finds items of responses by their own ids.
import type { MayRead, ResponseOwner, StoredItem, StoredResponse } from "../../../domain/models/stored-response.ts";
import type { Database } from "../../sql/database.ts";
import type { ContentColumns, ResponseContent } from "./response-content.ts";
import { idOf, inPieces, itemKeyOf, ownedBy, sealPurposes, sizeOf, turnByTurn, visible } from "./response-rows.ts";

/** Maximum ids in one statement, which has a separate query for each id. */
const idsAtOnce = 50;

/**
 * Maximum items that are indexed for a response. Only the last ones are, because a client may send its whole
 * conversation with each request.
 */
const maxNoted = 10_000;

/** Indexes the items of a response, or the last of very many. */
export async function addItems(
  tx: Database,
  { id, accountId, environment, createdAt }: Pick<StoredResponse, "id" | "accountId" | "environment" | "createdAt">,
  items: readonly StoredItem[],
): Promise<void> {
  const ids = new Set(items.flatMap((item) => idOf(item) ?? []));
  const keys = [...ids].slice(-maxNoted).map(itemKeyOf);
  const rows = keys.map((item) => ({
    ...{ account_id: accountId, environment, item, created_at: createdAt, response_id: id },
  }));
  await turnByTurn(rows, async (some) => {
    // A response may contain items of its input, so an item may be in the table already.
    await tx`INSERT INTO stored_response_items ${tx(some)} ON CONFLICT DO NOTHING`;
  });
}

/**
 * Returns the existing items by id, from responses first, then from conversations. Some servers reuse an id within a
 * day. All items therefore come, if possible, from the newest response with the last named item, because a caller
 * usually refers to one conversation. Items of the same key precede those of other keys.
 */
export async function findItems(
  db: Database,
  content: ResponseContent,
  owner: ResponseOwner,
  { ids, mayRead }: { ids: readonly string[]; mayRead: MayRead | undefined },
  nowSeconds: number,
): Promise<Map<string, StoredItem>> {
  const found = new Map<string, StoredItem>();
  const isTaken = (id: string, item: StoredItem) => {
    if (mayRead?.(sizeOf([item])) === false) return false;
    found.set(id, item);
    return true;
  };
  const wanted = new Set(ids);
  for (const piece of inPieces([...wanted].toReversed(), idsAtOnce)) {
    const missing = () => piece.filter((id) => !found.has(id));
    const holders = await holdersOf(db, owner, missing(), nowSeconds);
    for (const id of piece) {
      const holder = holders.get(itemKeyOf(id));
      if (holder === undefined || found.has(id)) continue;
      for (const [itemId, item] of await itemsOf(db, content, owner, { holder, wanted }, nowSeconds)) {
        if (!(found.has(itemId) || isTaken(itemId, item))) return found;
      }
      await new Promise(setImmediate);
    }
    for (const [id, item] of await ofConversations(db, content, owner, missing(), nowSeconds)) {
      if (!isTaken(id, item)) return found;
    }
  }
  return found;
}

/** Returns the wanted items of one response by id. If input and output have the same id, the output's item wins. */
async function itemsOf(
  db: Database,
  content: ResponseContent,
  owner: ResponseOwner,
  { holder, wanted }: { holder: string; wanted: ReadonlySet<string> },
  nowSeconds: number,
): Promise<Map<string, StoredItem>> {
  const [row]: ContentColumns[] = await db`
    SELECT id, input, response FROM stored_responses AS c WHERE id = ${holder} AND ${visible(db, owner, nowSeconds)}`;
  const items = (row && content.items(row)) ?? [];
  return new Map(
    items.flatMap((item) => {
      const id = idOf(item);
      return id !== undefined && wanted.has(id) ? [[id, item] as const] : [];
    }),
  );
}

/**
 * Finds the newest response with each item, by the item's digest. Responses of the calling key come first, then any
 * that the owner may see.
 */
async function holdersOf(
  db: Database,
  owner: ResponseOwner,
  ids: readonly string[],
  nowSeconds: number,
): Promise<Map<string, string>> {
  const keys = ids.map(itemKeyOf);
  const { keyId } = owner;
  const own = keyId === undefined ? new Map<string, string>() : await newestOf(keys, db`AND c.key_id || '' = ${keyId}`);
  const others = await newestOf(
    keys.filter((key) => !own.has(key)),
    db``,
  );
  return new Map([...own, ...others]);

  async function newestOf(some: readonly string[], mine: PromiseLike<unknown>): Promise<Map<string, string>> {
    if (some.length === 0) return new Map();
    const rows: { item: string; response_id: string }[] = await anyOf(
      db,
      some.map(
        (key) => db`
          (SELECT i.item, i.response_id FROM stored_response_items AS i JOIN stored_responses AS c ON c.id = i.response_id
          WHERE i.account_id = ${owner.accountId} AND i.environment = ${owner.environment} AND i.item = ${key}
            AND ${visible(db, owner, nowSeconds)} ${mine}
          ORDER BY i.created_at DESC, i.response_id DESC LIMIT 1)`,
      ),
    );
    return new Map(rows.map((row) => [row.item, row.response_id]));
  }
}

async function ofConversations(
  db: Database,
  content: ResponseContent,
  owner: ResponseOwner,
  ids: readonly string[],
  nowSeconds: number,
): Promise<[string, StoredItem][]> {
  if (ids.length === 0) return [];
  const wanted = new Map(ids.map((id) => [itemKeyOf(id), id]));
  const rows: { conversation_id: string; item: string; content: string }[] = await anyOf(
    db,
    [...wanted.keys()].map(
      (key) => db`
        (SELECT i.conversation_id, i.item, i.content FROM conversation_items AS i
        JOIN conversations AS c ON c.id = i.conversation_id
        WHERE i.account_id = ${owner.accountId} AND i.environment = ${owner.environment} AND i.item = ${key}
          AND ${ownedBy(db, owner)} AND c.expires_at > ${nowSeconds}
        ORDER BY i.added_at DESC LIMIT 1)`,
    ),
  );
  return rows.flatMap((row) => {
    const item = content.open<StoredItem>(sealPurposes.item(row.conversation_id, row.item), row.content);
    return item ? [[wanted.get(row.item) ?? "", item] satisfies [string, StoredItem]] : [];
  });
}

/** Combines the queries into one statement. */
function anyOf<Row>(db: Database, queries: readonly PromiseLike<Row>[]): PromiseLike<Row> {
  const all = queries
    .map((query) => db`${query} AS one`)
    .reduce((some, one) => db`${some} UNION ALL SELECT * FROM ${one}`);
  return db`SELECT * FROM ${all}`;
}
