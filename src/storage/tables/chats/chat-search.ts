// Searches chats: a bounded number for each page, with room for other work in between.

/** Maximum chats and characters that are scanned for one page. The next page continues after the last scanned chat. */
const maxChats = 1_000;
const maxCharacters = 8_000_000;
/** Characters scanned in one go, in some milliseconds, because SQLite blocks the thread that serves requests. */
const turnCharacters = 250_000;
/** Cost of scanning a chat in addition to its text, counted as characters. */
const chatCharacters = 2_000;
const batch = 50;

/** A chat's position in the list. */
export interface SearchPosition {
  id: string;
  /** Characters of the listed members. */
  list_size: number | string;
}

export interface ChatSearch<Place extends SearchPosition> {
  /** Maximum number of returned chats. */
  limit: number;
  /** Maximum characters of a page; a single chat may have more. */
  maxSize: number;
  /** Returns up to `limit` positions after this one, or from the beginning. */
  positions(after: Place | undefined, limit: number): Promise<Place[]>;
  /** Returns undefined for a chat that was deleted meanwhile. */
  texts(id: string): Promise<{ messages: string; completion: string } | undefined>;
  isSought(messages: string, completion: string): boolean;
}

export interface SearchedPage {
  ids: string[];
  /** Id of the last scanned chat, if further chats are left to scan. */
  lastId: string | undefined;
}

export async function searchChats<Place extends SearchPosition>(
  from: Place | undefined,
  { limit, maxSize, positions, texts, isSought }: ChatSearch<Place>,
): Promise<SearchedPage> {
  const ids: string[] = [];
  let [size, searched, characters, turn] = [0, 0, 0, 0];
  for (let last = from; ; ) {
    const found = await positions(last, batch);
    for (const position of found) {
      if (ids.length === limit || searched === maxChats || characters > maxCharacters) return { ids, lastId: last?.id };
      if (turn > turnCharacters) {
        await new Promise(setImmediate);
        turn = 0;
      }
      const { messages = "", completion = "" } = (await texts(position.id)) ?? {};
      if (isSought(messages, completion)) {
        size += Number(position.list_size);
        if (ids.length > 0 && size > maxSize) return { ids, lastId: last?.id };
        ids.push(position.id);
      }
      last = position;
      searched += 1;
      characters += messages.length + completion.length;
      turn += messages.length + completion.length + chatCharacters;
    }
    if (found.length < batch) return { ids, lastId: undefined };
  }
}
