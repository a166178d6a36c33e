// Conversations in the database.
import type {
  ChainFault,
  Conversation,
  ConversationStore,
  ItemPage,
  MayRead,
  ResponseChain,
  ResponseOwner,
  StoredItem,
} from "../../../domain/models/stored-response.ts";
import type { SealFor } from "../../../domain/seal.ts";
import { adding, type Database, writing } from "../../sql/database.ts";
import { Erasing } from "../../sql/erasing.ts";
import { addToConversation, deleteItems, type ItemColumns, placesWithin, readAll } from "./conversation-items.ts";
import { ResponseContent } from "./response-content.ts";
import { available, conversations, itemKeyOf, ownedBy, ownerIs, sealPurposes } from "./response-rows.ts";

/** Maximum characters of JSON of a page in memory; a single item may be larger. */
const maxPageSize = 16_000_000;
/** Characters that are read and decrypted in one go, which blocks requests. */
const sizeAtOnce = 1_000_000;

type Metadata = Readonly<Record<string, string>>;

interface Page {
  after: string | undefined;
  limit: number;
  order: "asc" | "desc";
}

/**
 * Every write is a separate transaction, even a single statement: on SQLite's one connection it would otherwise join an
 * open transaction and be rolled back with it.
 */
export class SqlConversationStore implements ConversationStore {
  readonly #db: Database;
  readonly #content: ResponseContent;
  readonly #erasing: Erasing;

  constructor(db: Database, sealFor: SealFor) {
    this.#db = db;
    this.#content = new ResponseContent(sealFor);
    this.#erasing = new Erasing(db);
  }

  async create(conversation: Conversation, items: readonly StoredItem[]): Promise<void> {
    const { id, expiresAt, createdAt, metadata } = conversation;
    const row = { ...conversations.row(conversation), next_place: 0, metadata: this.#sealed(id, metadata) };
    await available(
      adding(this.#db, async (tx) => {
        await tx`INSERT INTO conversations ${tx(row)}`;
        if (items.length === 0) return;
        const added = { conversationId: id, items, responseId: null, expiresAt, nowSeconds: createdAt };
        await addToConversation(tx, this.#content, added, ownerIs(tx, conversation));
      }),
    );
  }

  async find(owner: ResponseOwner, id: string, nowSeconds: number): Promise<Conversation | undefined> {
    const [row]: { metadata: string }[] = await available(this.#db`
      SELECT * FROM conversations AS c WHERE id = ${id} AND ${this.#visible(owner, nowSeconds)}`);
    return row && this.#conversation(row);
  }

  async setMetadata(
    owner: ResponseOwner,
    id: string,
    metadata: Metadata,
    nowSeconds: number,
  ): Promise<Conversation | undefined> {
    if (!(await available(this.#isThere(owner, id, nowSeconds)))) return undefined;
    const sealed = this.#sealed(id, metadata);
    const [row]: { metadata: string }[] = await available(
      writing(
        this.#db,
        async (tx) =>
          await tx`
          UPDATE conversations AS c SET metadata = ${sealed}
          WHERE id = ${id} AND ${this.#visible(owner, nowSeconds)} RETURNING *`,
      ),
    );
    // SQLite's write-ahead log still has the previous labels.
    if (row) this.#erasing.soon();
    return row && this.#conversation(row);
  }

  async delete(owner: ResponseOwner, id: string, nowSeconds: number): Promise<boolean> {
    if (!(await available(this.#isThere(owner, id, nowSeconds)))) return false;
    return await available(
      writing(this.#db, async (tx) => {
        const [row] = await tx`
          DELETE FROM conversations AS c WHERE id = ${id} AND ${this.#visible(owner, nowSeconds)} RETURNING id`;
        if (!row) return false;
        await deleteItems(tx, id);
        this.#erasing.soon();
        return true;
      }),
    );
  }

  add(
    owner: ResponseOwner,
    id: string,
    items: readonly StoredItem[],
    expiresAt: number,
    nowSeconds: number,
  ): Promise<readonly StoredItem[] | undefined> {
    const added = { conversationId: id, items, responseId: null, expiresAt, nowSeconds };
    return available(adding(this.#db, (tx) => addToConversation(tx, this.#content, added, ownedBy(this.#db, owner))));
  }

  list(owner: ResponseOwner, id: string, page: Page, nowSeconds: number): Promise<ItemPage | undefined> {
    return available(this.#list(owner, id, page, nowSeconds));
  }

  all(
    owner: ResponseOwner,
    id: string,
    nowSeconds: number,
    maxSize: number,
    mayRead?: MayRead,
  ): Promise<ResponseChain | ChainFault> {
    return available(this.#all(owner, id, nowSeconds, { maxSize, mayRead }));
  }

  async findItem(
    owner: ResponseOwner,
    id: string,
    itemId: string,
    nowSeconds: number,
  ): Promise<StoredItem | undefined> {
    const [row]: ItemColumns[] = await available(this.#db`
      SELECT i.item, i.content FROM conversations AS c JOIN conversation_items AS i ON i.conversation_id = c.id
      WHERE c.id = ${id} AND ${this.#visible(owner, nowSeconds)} AND i.item = ${itemKeyOf(itemId)}`);
    return row && this.#item(id, row);
  }

  async deleteItem(owner: ResponseOwner, id: string, itemId: string, nowSeconds: number): Promise<boolean> {
    const isThere = await available(this.#isThere(owner, id, nowSeconds));
    if (!isThere || (await available(this.#positionOf(id, itemId))) === undefined) return false;
    return await available(
      writing(this.#db, async (tx) => {
        const [row] = await tx`
          DELETE FROM conversation_items WHERE conversation_id = ${id} AND item = ${itemKeyOf(itemId)}
            AND EXISTS (SELECT 1 FROM conversations AS c WHERE c.id = ${id} AND ${this.#visible(owner, nowSeconds)})
          RETURNING place`;
        if (row) this.#erasing.soon();
        return row !== undefined;
      }),
    );
  }

  async #list(
    owner: ResponseOwner,
    id: string,
    { after, limit, order }: Page,
    nowSeconds: number,
  ): Promise<ItemPage | undefined> {
    const db = this.#db;
    if (!(await this.#isThere(owner, id, nowSeconds))) return undefined;
    const position = after === undefined ? undefined : await this.#positionOf(id, after);
    if (after !== undefined && position === undefined) return undefined;
    const ascending = order === "asc";
    const beyond = position === undefined ? db`` : db`AND place ${ascending ? db`>` : db`<`} ${position}`;
    const direction = ascending ? db`ASC` : db`DESC`;
    const found: { place: number | string; size: number | string }[] = await db`
      SELECT place, size FROM conversation_items WHERE conversation_id = ${id} ${beyond}
      ORDER BY place ${direction} LIMIT ${limit + 1}`;
    const shown = placesWithin(found.slice(0, limit), maxPageSize);
    const items: StoredItem[] = [];
    for (let read = 0; read < shown.length; ) {
      if (read > 0) await new Promise(setImmediate);
      const some = placesWithin(shown.slice(read), sizeAtOnce);
      const rows: ItemColumns[] = await db`
        SELECT item, content FROM conversation_items
        WHERE conversation_id = ${id} AND place IN ${db(some.map((one) => Number(one.place)))}
        ORDER BY place ${direction}`;
      items.push(...rows.map((row) => this.#item(id, row)).filter((item) => item !== undefined));
      read += some.length;
    }
    return { items, hasMore: found.length > shown.length };
  }

  async #all(
    owner: ResponseOwner,
    id: string,
    nowSeconds: number,
    bounds: { maxSize: number; mayRead: MayRead | undefined },
  ): Promise<ResponseChain | ChainFault> {
    if (!(await this.#isThere(owner, id, nowSeconds))) return { missing: id };
    return await readAll(this.#db, this.#content, { conversationId: id, before: undefined, ...bounds });
  }

  async #isThere(owner: ResponseOwner, id: string, nowSeconds: number): Promise<boolean> {
    const [row] = await this.#db`
      SELECT 1 FROM conversations AS c WHERE id = ${id} AND ${this.#visible(owner, nowSeconds)}`;
    return row !== undefined;
  }

  async #positionOf(id: string, itemId: string): Promise<number | undefined> {
    const [row]: { place: number | string }[] = await this.#db`
      SELECT place FROM conversation_items WHERE conversation_id = ${id} AND item = ${itemKeyOf(itemId)}`;
    return row && Number(row.place);
  }

  #conversation(row: { metadata: string }): Conversation | undefined {
    const record = conversations.record(row);
    const metadata = this.#content.open<Metadata>(sealPurposes.metadata(record.id), row.metadata);
    return metadata && { ...record, metadata };
  }

  #item(conversationId: string, { item, content }: ItemColumns): StoredItem | undefined {
    return this.#content.open<StoredItem>(sealPurposes.item(conversationId, item), content);
  }

  #sealed(id: string, metadata: Metadata): string {
    return this.#content.seal(sealPurposes.metadata(id), metadata);
  }

  #visible(owner: ResponseOwner, nowSeconds: number) {
    return this.#db`${ownedBy(this.#db, owner)} AND c.expires_at > ${nowSeconds}`;
  }
}
