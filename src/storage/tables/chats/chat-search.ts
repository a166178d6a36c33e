// Looks through chats for those that say something: for one page only so many, with room for other work between them.

/** What one page looks at: then it ends, however little it found, and the next one goes on behind it. */
const maxChats = 1_000;
const maxCharacters = 8_000_000;
/** What is looked at in one go: some milliseconds, as SQLite works in the thread that serves all requests. */
const turnCharacters = 250_000;
/** What a chat costs to look at beside its text, in characters. */
const chatCharacters = 2_000;
const batch = 50;

/** A chat in the order of the list. */
export interface SearchedPlace {
  id: string;
  /** Characters of what a list shows of it. */
  list_size: number | string;
}

export interface ChatSearch<Place extends SearchedPlace> {
  /** The most matching chats that are given. */
  limit: number;
  /** Characters of what a page shows; a single chat may have more. */
  maxSize: number;
  /** Up to `limit` places after this one, or from the beginning. */
  places(after: Place | undefined, limit: number): Promise<Place[]>;
  /** Is undefined for a chat that is gone meanwhile. */
  texts(id: string): Promise<{ messages: string; completion: string } | undefined>;
  isSought(messages: string, completion: string): boolean;
}

export interface SearchedPage {
  ids: string[];
  /** The last that was looked at, where there are others behind it. */
  lastId: string | undefined;
}

export async function searchChats<Place extends SearchedPlace>(
  from: Place | undefined,
  { limit, maxSize, places, texts, isSought }: ChatSearch<Place>,
): Promise<SearchedPage> {
  const ids: string[] = [];
  let [size, looked, characters, turn] = [0, 0, 0, 0];
  for (let last = from; ; ) {
    const found = await places(last, batch);
    for (const place of found) {
      if (ids.length === limit || looked === maxChats || characters > maxCharacters) return { ids, lastId: last?.id };
      if (turn > turnCharacters) {
        await new Promise(setImmediate);
        turn = 0;
      }
      const { messages = "", completion = "" } = (await texts(place.id)) ?? {};
      if (isSought(messages, completion)) {
        size += Number(place.list_size);
        if (ids.length > 0 && size > maxSize) return { ids, lastId: last?.id };
        ids.push(place.id);
      }
      last = place;
      looked += 1;
      characters += messages.length + completion.length;
      turn += messages.length + completion.length + chatCharacters;
    }
    if (found.length < batch) return { ids, lastId: undefined };
  }
}
