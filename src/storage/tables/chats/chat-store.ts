// Stored chats in the database.
import { ChatTextSearch } from "../../../domain/models/chat-text.ts";
import type {
  ChatFilter,
  ChatOwner,
  ChatPage,
  ChatStore,
  NewChat,
  StoredChat,
} from "../../../domain/models/stored-chat.ts";
import { adding, type Database, writing } from "../../sql/database.ts";
import { Erasing } from "../../sql/erasing.ts";
import { reached } from "../../sql/outage.ts";
import { storedChats, tagOf, tagRows, toRow } from "./chat-rows.ts";
import { type SearchedPage, type SearchPosition, searchChats } from "./chat-search.ts";

/** Maximum characters of JSON of a page in memory; a single chat may be larger. */
const maxPageSize = 16_000_000;
/** Seconds for which a deleted chat keeps its position in lists. */
const deletedMarkSeconds = 3_600;
/** Maximum to which the chats with a label are counted, to find the rarest label. */
const rarityBound = 1_000;

interface ChatPosition extends SearchPosition {
  created_at: number | string;
}

interface Page {
  after: string | undefined;
  limit: number;
  order: "asc" | "desc";
}

interface PlacedPage extends Omit<Page, "after"> {
  after: ChatPosition | undefined;
}

/**
 * Every write is a separate transaction, even a single statement: on SQLite's one connection it would otherwise join an
 * open transaction and be rolled back with it.
 */
export class SqlChatStore implements ChatStore {
  readonly #db: Database;
  readonly #erasing: Erasing;

  constructor(db: Database) {
    this.#db = db;
    this.#erasing = new Erasing(db);
  }

  async insert(chats: readonly NewChat[]): Promise<void> {
    if (chats.length === 0) return;
    const rows = chats.map(toRow);
    await available(
      adding(this.#db, async (tx) => {
        const inserted: { id: string }[] =
          await tx`INSERT INTO stored_chats ${tx(rows)} ON CONFLICT (id) DO NOTHING RETURNING id`;
        // Only new chats get tags. A batch may be written twice, and labels may have changed in between.
        const ids = new Set(inserted.map(({ id }) => id));
        const tags = chats.filter(({ id }) => ids.has(id)).flatMap((chat) => tagRows(chat, chat.metadata));
        if (tags.length > 0) await tx`INSERT INTO stored_chat_tags ${tx(tags)}`;
      }),
    );
  }

  async find(owner: ChatOwner, id: string, nowSeconds: number): Promise<StoredChat | undefined> {
    const rows = this.#db`
      SELECT ${this.#db.unsafe(storedChats.list)} FROM stored_chats AS c
      WHERE id = ${id} AND ${this.#visible(owner, nowSeconds)}`;
    return storedChats.first(available(rows));
  }

  async has(owner: ChatOwner, id: string, nowSeconds: number): Promise<boolean> {
    const [row] = await available(this.#db`
      SELECT 1 FROM stored_chats AS c WHERE id = ${id} AND ${this.#visible(owner, nowSeconds)}`);
    return row !== undefined;
  }

  async findMessages(owner: ChatOwner, id: string, nowSeconds: number): Promise<readonly unknown[] | undefined> {
    const [row]: { messages: string }[] = await available(this.#db`
      SELECT messages FROM stored_chats AS c WHERE id = ${id} AND ${this.#visible(owner, nowSeconds)}`);
    return row && (JSON.parse(row.messages) as unknown[]);
  }

  async list(owner: ChatOwner, filter: ChatFilter, page: Page, nowSeconds: number): Promise<ChatPage | undefined> {
    return available(this.#list(owner, filter, page, nowSeconds));
  }

  async setMetadata(
    owner: ChatOwner,
    id: string,
    metadata: Readonly<Record<string, string>>,
    nowSeconds: number,
  ): Promise<boolean> {
    if (!(await this.has(owner, id, nowSeconds))) return false;
    return available(
      writing(this.#db, async (tx) => {
        const [row]: { created_at: number | string }[] = await tx`
          UPDATE stored_chats AS c SET metadata = ${JSON.stringify(metadata)}
          WHERE id = ${id} AND ${this.#visible(owner, nowSeconds)} RETURNING created_at`;
        if (!row) return false;
        const tags = tagRows({ ...owner, id, createdAt: Number(row.created_at) }, metadata);
        await tx`DELETE FROM stored_chat_tags WHERE chat_id = ${id}`;
        if (tags.length > 0) await tx`INSERT INTO stored_chat_tags ${tx(tags)}`;
        return true;
      }),
    );
  }

  async delete(owner: ChatOwner, id: string, nowSeconds: number): Promise<boolean> {
    const markUntil = nowSeconds + deletedMarkSeconds;
    if (!(await this.has(owner, id, nowSeconds))) return false;
    return available(
      writing(this.#db, async (tx) => {
        const [row] = await tx`
          UPDATE stored_chats AS c SET deleted_at = ${nowSeconds}, list_size = 0, size = 0,
            metadata = '', parameters = '', completion = '', messages = '',
            expires_at = CASE WHEN expires_at < ${markUntil} THEN expires_at ELSE ${markUntil} END
          WHERE id = ${id} AND ${this.#visible(owner, nowSeconds)} RETURNING id`;
        if (!row) return false;
        await tx`DELETE FROM stored_chat_tags WHERE chat_id = ${id}`;
        this.#erasing.soon();
        return true;
      }),
    );
  }

  async deleteExpired(nowSeconds: number, limit: number): Promise<number> {
    return available(
      writing(this.#db, async (tx) => {
        const rows: { id: string }[] = await tx`
          SELECT id FROM stored_chats WHERE expires_at <= ${nowSeconds} ORDER BY expires_at LIMIT ${limit}`;
        if (rows.length === 0) return 0;
        const ids = rows.map(({ id }) => id);
        await tx`DELETE FROM stored_chat_tags WHERE chat_id IN ${tx(ids)}`;
        await tx`DELETE FROM stored_chats WHERE id IN ${tx(ids)}`;
        this.#erasing.soon();
        return ids.length;
      }),
    );
  }

  async #list(owner: ChatOwner, filter: ChatFilter, page: Page, nowSeconds: number): Promise<ChatPage | undefined> {
    const after = page.after === undefined ? undefined : await this.#positionOf(owner, page.after);
    if (page.after !== undefined && !after) return undefined;
    if (filter.search !== undefined) {
      const { ids, lastId } = await this.#search(owner, filter, { ...page, after }, filter.search, nowSeconds);
      const chats = await this.#chats(owner, ids, nowSeconds);
      return lastId === undefined ? { chats, hasMore: false } : { chats, hasMore: true, lastId };
    }
    const found = await this.#positions(owner, filter, { ...page, after }, nowSeconds);
    const ids: string[] = [];
    let size = 0;
    for (const position of found.slice(0, page.limit)) {
      size += Number(position.list_size);
      if (ids.length > 0 && size > maxPageSize) break;
      ids.push(position.id);
    }
    return { chats: await this.#chats(owner, ids, nowSeconds), hasMore: found.length > ids.length };
  }

  /** Returns chats in the order of the ids. */
  async #chats(owner: ChatOwner, ids: readonly string[], nowSeconds: number): Promise<StoredChat[]> {
    if (ids.length === 0) return [];
    const found = await storedChats.all(this.#db`
      SELECT ${this.#db.unsafe(storedChats.list)} FROM stored_chats AS c
      WHERE id IN ${this.#db(ids)} AND ${this.#visible(owner, nowSeconds)}`);
    const byId = new Map(found.map((chat) => [chat.id, chat]));
    return ids.flatMap((id) => byId.get(id) ?? []);
  }

  #search(owner: ChatOwner, filter: ChatFilter, page: PlacedPage, text: string, now: number): Promise<SearchedPage> {
    const sought = new ChatTextSearch(text);
    return searchChats(page.after, {
      limit: page.limit,
      maxSize: maxPageSize,
      positions: async (after, limit) =>
        (await this.#positions(owner, filter, { ...page, after, limit: limit - 1 }, now)).slice(0, limit),
      texts: async (id) => {
        const [row]: { messages: string; completion: string }[] = await this.#db`
          SELECT messages, completion FROM stored_chats AS c WHERE id = ${id} AND ${this.#visible(owner, now)}`;
        return row;
      },
      isSought: (messages, completion) => sought.isIn(messages, completion),
    });
  }

  /**
   * Returns one position more than a page holds, if there are more. Reads in the order of an index, so every page costs
   * the same.
   */
  async #positions(
    owner: ChatOwner,
    { model, metadata = {} }: ChatFilter,
    page: PlacedPage,
    nowSeconds: number,
  ): Promise<ChatPosition[]> {
    const db = this.#db;
    const { accountId, environment, appId, personId } = owner;
    const [rarest, ...others] = await this.#byRarity(owner, Object.entries(metadata).map(tagOf));
    // Only one of these conditions uses an index, so the cost is independent of other owners. The person has
    // precedence, because its column is stored behind the large ones.
    let indexed = model === undefined ? db`` : db`AND c.model = ${model}`;
    if (appId !== null) indexed = db`AND c.app_id = ${appId}`;
    if (personId !== null) indexed = db`AND c.person_id = ${personId}`;
    const source = rarest
      ? db`stored_chat_tags AS p JOIN stored_chats AS c ON c.id = p.chat_id
          WHERE p.account_id = ${accountId} AND p.environment = ${environment} AND p.tag = ${rarest}`
      : db`stored_chats AS c WHERE c.account_id = ${accountId} AND c.environment = ${environment} ${indexed}`;
    const [at, id] = rarest ? [db`p.created_at`, db`p.chat_id`] : [db`c.created_at`, db`c.id`];
    const ascending = page.order === "asc";
    const direction = ascending ? db`ASC` : db`DESC`;
    const beyond = page.after
      ? db`AND (${at}, ${id}) ${ascending ? db`>` : db`<`} (${Number(page.after.created_at)}, ${page.after.id})`
      : db``;
    const ofModel = model === undefined ? db`` : db`AND c.model || '' = ${model}`;
    let tagged = db``;
    for (const tag of others) {
      tagged = db`${tagged} AND EXISTS (SELECT 1 FROM stored_chat_tags AS t WHERE t.account_id = ${accountId}
        AND t.environment = ${environment} AND t.tag = ${tag} AND t.created_at = ${at} AND t.chat_id = ${id})`;
    }
    return db`
      SELECT c.id, c.created_at, c.list_size FROM ${source} ${beyond} ${ofModel} ${tagged}
        AND ${this.#visible(owner, nowSeconds)}
      ORDER BY ${at} ${direction}, ${id} ${direction} LIMIT ${page.limit + 1}`;
  }

  async #positionOf(owner: ChatOwner, id: string): Promise<ChatPosition | undefined> {
    const [position]: ChatPosition[] = await this.#db`
      SELECT id, created_at, list_size FROM stored_chats AS c WHERE id = ${id} AND ${this.#ownedBy(owner)}`;
    return position;
  }

  /** Finds chats by their rarest label, and checks the other labels. */
  async #byRarity(owner: ChatOwner, tags: readonly string[]): Promise<readonly string[]> {
    if (tags.length < 2) return tags;
    const counted: { tag: string; count: number }[] = [];
    for (const tag of tags) {
      const [row] = await this.#db`
        SELECT count(*) AS count FROM (
          SELECT 1 FROM stored_chat_tags
          WHERE account_id = ${owner.accountId} AND environment = ${owner.environment} AND tag = ${tag}
          LIMIT ${rarityBound}
        ) AS few`;
      counted.push({ tag, count: Number(row?.count) });
    }
    return counted.sort((a, b) => a.count - b.count).map(({ tag }) => tag);
  }

  /**
   * Returns a condition that no index serves. With an index, SQLite would scan the whole account instead of reading by
   * id.
   */
  #ownedBy({ accountId, environment, appId, personId }: ChatOwner) {
    const ofApp = appId === null ? this.#db`` : this.#db`AND c.app_id || '' = ${appId}`;
    const ofPerson = personId === null ? this.#db`` : this.#db`AND c.person_id || '' = ${personId}`;
    return this.#db`c.account_id || '' = ${accountId} AND c.environment || '' = ${environment} ${ofApp} ${ofPerson}`;
  }

  #visible(owner: ChatOwner, nowSeconds: number) {
    return this.#db`${this.#ownedBy(owner)} AND c.expires_at > ${nowSeconds} AND c.deleted_at IS NULL`;
  }
}

function available<Value>(work: Promise<Value> | PromiseLike<Value>): Promise<Value> {
  return reached("Stored chats", work);
}
