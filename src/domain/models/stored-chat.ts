// Stored chat completions and the port of their store.
import type { Environment } from "../api-key.ts";

export interface StoredChat {
  /** The completion's id. The gateway makes it, because engines may use an id twice. */
  id: string;
  accountId: string;
  environment: Environment;
  keyId: string;
  /** The app that stored the chat. Null if a key did. */
  appId: string | null;
  /** The member who owns the chat. Null if the account does. */
  personId: string | null;
  model: string;
  /** Unix seconds. */
  createdAt: number;
  expiresAt: number;
  metadata: Readonly<Record<string, string>>;
  /** Members of the request, without `model`, `messages`, `stream`, `stream_options`, `store` and `metadata`. */
  parameters: Readonly<Record<string, unknown>>;
  /** The completion object as the client got it. For a stream, the complete answer. */
  completion: Readonly<Record<string, unknown>>;
}

/** A chat with its messages. The messages may be large, so they are read only on demand. */
export interface NewChat extends StoredChat {
  messages: readonly unknown[];
}

/** The party whose chats may be seen. An app sees only chats that it stored, a member only their own. */
export interface ChatOwner {
  accountId: string;
  environment: Environment;
  /** The app whose chats may be seen. Null means any app. */
  appId: string | null;
  /** The person whose chats may be seen. Null means any person. */
  personId: string | null;
}

export interface ChatFilter {
  model?: string;
  /** The chat must have all of these members, each with this value. */
  metadata?: Readonly<Record<string, string>>;
  /** Text that the messages or the answer must contain, ignoring case. */
  search?: string;
}

export interface ChatPage {
  /** The chats of the page. There may be fewer than requested, because the size of a page is limited. */
  chats: StoredChat[];
  hasMore: boolean;
  /**
   * Set if a search stopped before the end of the list. The value is the last chat that was scanned, so the next page
   * begins after it.
   */
  lastId?: string;
}

/** Stores chats. An expired chat is never found, even before it is deleted. */
export interface ChatStore {
  /** Inserts all chats or none. If a chat exists, it stays unchanged. */
  insert(chats: readonly NewChat[]): Promise<void>;
  find(owner: ChatOwner, id: string, nowSeconds: number): Promise<StoredChat | undefined>;
  /** Reports whether `find` would find the chat, without reading its content. */
  has(owner: ChatOwner, id: string, nowSeconds: number): Promise<boolean>;
  findMessages(owner: ChatOwner, id: string, nowSeconds: number): Promise<readonly unknown[] | undefined>;
  /**
   * Lists chats in order of creation. Returns undefined if `after` is no chat of this owner. A chat that was deleted
   * within the last hour is accepted, so that clients can delete while they page. A search scans a limited number of
   * chats for each page.
   */
  list(
    owner: ChatOwner,
    filter: ChatFilter,
    page: { after: string | undefined; limit: number; order: "asc" | "desc" },
    nowSeconds: number,
  ): Promise<ChatPage | undefined>;
  /** Replaces the metadata of a chat. Returns false if the chat does not exist. */
  setMetadata(
    owner: ChatOwner,
    id: string,
    metadata: Readonly<Record<string, string>>,
    nowSeconds: number,
  ): Promise<boolean>;
  /** Deletes a chat and erases its content immediately. Returns false if the chat does not exist. */
  delete(owner: ChatOwner, id: string, nowSeconds: number): Promise<boolean>;
  /** Deletes up to `limit` expired chats, and returns their number. */
  deleteExpired(nowSeconds: number, limit: number): Promise<number>;
}

/** Queues completed chats and stores them later, so that requests do not wait. */
export interface ChatWriter {
  /** Days to keep a chat. If 0, nothing is stored. A configuration reload may change the number. */
  readonly retentionDays: number;
  /** Queues a chat. `size` is its approximate number of characters as JSON. */
  add(chat: NewChat, size: number): void;
  /** Logs that a completion that should have been stored was not. */
  notStored(accountId: string, reason: "too_large" | "unreadable" | "no_room" | "empty"): void;
  /** Resolves when the queued chats are stored. If storing fails, this is logged and the chats stay queued. */
  flush(): Promise<void>;
}
