// Reads the items of a response and of all responses that it continues, in order.
import type {
  ChainFault,
  MayRead,
  ResponseChain,
  ResponseOwner,
  ResponseStatus,
  StoredItem,
} from "../../../domain/models/stored-response.ts";
import type { Database } from "../../sql/database.ts";
import { conversationBefore } from "./conversation-items.ts";
import type { ContentColumns, ResponseContent } from "./response-content.ts";
import { visible } from "./response-rows.ts";

/** Maximum responses of one conversation, which also ends a cyclic chain. */
const maxResponses = 10_000;
/** Maximum characters that are read at once. */
const batchSize = 4_000_000;
const idsAtOnce = 200;

interface Link {
  id: string;
  previous_id: string | null;
  conversation_id: string | null;
  status: ResponseStatus;
  size: number | string;
  total: number | string;
}

export async function readChain(
  db: Database,
  content: ResponseContent,
  owner: ResponseOwner,
  { id, maxSize, mayRead }: { id: string; maxSize: number; mayRead: MayRead | undefined },
  nowSeconds: number,
): Promise<ResponseChain | ChainFault> {
  const links = await linksFrom(db, owner, id, maxSize, nowSeconds);
  const root = links.at(-1);
  if (!root) return { missing: id };
  const unfinished = links.find(({ status }) => status === "queued" || status === "in_progress");
  if (unfinished) return { unfinished: unfinished.id };
  const size = Number(root.total);
  if (size > maxSize || links.length === maxResponses) return { tooLarge: true };
  if (root.previous_id !== null) return { missing: root.previous_id };
  if (mayRead?.(size) === false) return { tooLarge: true };
  const before = await beforeRoot(db, content, owner, { root, maxSize: maxSize - size, mayRead }, nowSeconds);
  if (!("items" in before)) return before;
  const items = [...before.items];
  for (const ids of batchesOf(links.toReversed())) {
    const rows: ContentColumns[] = await db`
      SELECT id, input, response FROM stored_responses AS c WHERE id IN ${db(ids)} AND ${visible(db, owner, nowSeconds)}`;
    const byId = new Map(rows.map((row) => [row.id, row]));
    for (const one of ids) {
      const row = byId.get(one);
      const found: readonly StoredItem[] | undefined = row && content.items(row);
      // The response was deleted meanwhile.
      if (!found) return { missing: one };
      for (const item of found) items.push(item);
    }
    await new Promise(setImmediate);
  }
  return { items, size: before.size + size };
}

/** Returns the response and its ancestors, up to a missing one or the size limit. */
async function linksFrom(
  db: Database,
  owner: ResponseOwner,
  id: string,
  maxSize: number,
  nowSeconds: number,
): Promise<Link[]> {
  return await db`
    WITH RECURSIVE chain (id, previous_id, conversation_id, status, size, total, depth) AS (
      SELECT c.id, c.previous_id, c.conversation_id, c.status, c.input_size + c.output_size,
        c.input_size + c.output_size, 1
      FROM stored_responses AS c WHERE c.id = ${id} AND ${visible(db, owner, nowSeconds)}
      UNION ALL
      SELECT c.id, c.previous_id, c.conversation_id, c.status, c.input_size + c.output_size,
        chain.total + c.input_size + c.output_size, chain.depth + 1
      FROM chain CROSS JOIN stored_responses AS c
      WHERE c.id = chain.previous_id AND ${visible(db, owner, nowSeconds)}
        AND chain.depth < ${maxResponses} AND chain.total <= ${maxSize}
    )
    SELECT id, previous_id, conversation_id, status, size, total FROM chain ORDER BY depth`;
}

/** Returns the conversation's items that precede the chain's first response. */
async function beforeRoot(
  db: Database,
  content: ResponseContent,
  owner: ResponseOwner,
  { root, ...bounds }: { root: Link; maxSize: number; mayRead: MayRead | undefined },
  nowSeconds: number,
): Promise<ResponseChain | ChainFault> {
  if (root.conversation_id === null) return { items: [], size: 0 };
  const { id, conversation_id: conversationId } = root;
  return await conversationBefore(db, content, owner, { conversationId, responseId: id, ...bounds }, nowSeconds);
}

/** Returns ids of responses that are read together, in order. */
function batchesOf(links: readonly Link[]): string[][] {
  const batches: string[][] = [];
  let size = 0;
  for (const link of links) {
    const last = batches.at(-1);
    size += Number(link.size);
    if (last && last.length < idsAtOnce && size <= batchSize) last.push(link.id);
    else {
      batches.push([link.id]);
      size = Number(link.size);
    }
  }
  return batches;
}
