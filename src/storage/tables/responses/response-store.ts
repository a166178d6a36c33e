// Stored responses in the database.
import type {
  ChainFault,
  MayRead,
  ResponseChain,
  ResponseOwner,
  ResponseStore,
  StoredItem,
  StoredResponse,
} from "../../../domain/models/stored-response.ts";
import type { SealFor } from "../../../domain/seal.ts";
import { adding, type Database, writing } from "../../sql/database.ts";
import { Erasing } from "../../sql/erasing.ts";
import { putIntoConversation } from "./conversation-items.ts";
import { readChain } from "./response-chain.ts";
import { type ContentColumns, ResponseContent } from "./response-content.ts";
import { deleteExpired } from "./response-expiry.ts";
import { addItems, findItems } from "./response-items.ts";
import { available, outputOf, storedResponses, visible } from "./response-rows.ts";

/** Seconds for which the row of a deleted response stays, so that a late writer cannot restore it. */
const deletedMarkSeconds = 3_600;

/**
 * Every write is a separate transaction, even a single statement: on SQLite's one connection it would otherwise join an
 * open transaction and be rolled back with it.
 */
export class SqlResponseStore implements ResponseStore {
  readonly #db: Database;
  readonly #content: ResponseContent;
  readonly #erasing: Erasing;

  constructor(db: Database, sealFor: SealFor) {
    this.#db = db;
    this.#content = new ResponseContent(sealFor);
    this.#erasing = new Erasing(db);
  }

  async insert(responses: readonly StoredResponse[], mayCommit = () => true): Promise<void> {
    if (responses.length === 0) return;
    const rows = await this.#content.rows(responses);
    await available(
      adding(this.#db, async (tx) => {
        const inserted: { id: string }[] =
          await tx`INSERT INTO stored_responses ${tx(rows)} ON CONFLICT (id) DO NOTHING RETURNING id`;
        const ids = new Set(inserted.map(({ id }) => id));
        const added = responses.filter(({ id }) => ids.has(id));
        for (const stored of added) await addItems(tx, stored, [...stored.input, ...outputOf(stored.response)]);
        // Sorted, so that writers to several conversations do not deadlock.
        for (const stored of added.toSorted(byConversation)) await putIntoConversation(tx, this.#content, stored);
        if (!mayCommit()) throw new Error("The responses are not wanted any more.");
      }),
    );
  }

  async find(owner: ResponseOwner, id: string, nowSeconds: number): Promise<StoredResponse | undefined> {
    const [row]: ContentColumns[] = await available(this.#db`
      SELECT ${this.#db.unsafe(storedResponses.list)}, input, response FROM stored_responses AS c
      WHERE id = ${id} AND ${visible(this.#db, owner, nowSeconds)}`);
    return row && this.#content.record(row);
  }

  chain(
    owner: ResponseOwner,
    id: string,
    nowSeconds: number,
    maxSize: number,
    mayRead?: MayRead,
  ): Promise<ResponseChain | ChainFault> {
    return available(readChain(this.#db, this.#content, owner, { id, maxSize, mayRead }, nowSeconds));
  }

  items(
    owner: ResponseOwner,
    ids: readonly string[],
    nowSeconds: number,
    mayRead?: MayRead,
  ): Promise<ReadonlyMap<string, StoredItem>> {
    return available(findItems(this.#db, this.#content, owner, { ids, mayRead }, nowSeconds));
  }

  async delete(owner: ResponseOwner, id: string, nowSeconds: number): Promise<boolean> {
    const markUntil = nowSeconds + deletedMarkSeconds;
    const [there] = await available(this.#db`
      SELECT 1 FROM stored_responses AS c WHERE id = ${id} AND ${visible(this.#db, owner, nowSeconds)}`);
    if (!there) return false;
    return await available(
      writing(this.#db, async (tx) => {
        const [row] = await tx`
          UPDATE stored_responses AS c SET deleted_at = ${nowSeconds}, seen_at = NULL, events_until = NULL,
            input_size = 0, output_size = 0, input = '', response = '',
            expires_at = CASE WHEN expires_at < ${markUntil} THEN expires_at ELSE ${markUntil} END
          WHERE id = ${id} AND ${visible(this.#db, owner, nowSeconds)} RETURNING id`;
        if (!row) return false;
        await tx`DELETE FROM stored_response_items WHERE response_id = ${id}`;
        await tx`DELETE FROM response_events WHERE response_id = ${id}`;
        this.#erasing.soon();
        return true;
      }),
    );
  }

  async deleteExpired(nowSeconds: number, limit: number): Promise<number> {
    const deleted = await available(writing(this.#db, (tx) => deleteExpired(tx, nowSeconds, limit)));
    if (deleted > 0) this.#erasing.soon();
    return deleted;
  }
}

function byConversation(a: StoredResponse, b: StoredResponse): number {
  return (a.conversationId ?? "") < (b.conversationId ?? "") ? -1 : 1;
}
