// Stored chat completions and the port of their store.
import type { Environment } from "../api-key.ts";

export interface StoredChat {
  /** The completion's id, made by the gateway, because engines may repeat theirs. */
  id: string;
  accountId: string;
  environment: Environment;
  keyId: string;
  /** The app that stored the chat; null for keys. */
  appId: string | null;
  /** The member who owns the chat; null: the account. */
  personId: string | null;
  model: string;
  /** Unix seconds. */
  createdAt: number;
  expiresAt: number;
  metadata: Readonly<Record<string, string>>;
  /** The request's members except `model`, `messages`, `stream`, `stream_options`, `store` and `metadata`. */
  parameters: Readonly<Record<string, unknown>>;
  /** The completion object as the client got it, or the complete answer of its stream. */
  completion: Readonly<Record<string, unknown>>;
}

/** A chat with the request's messages, which may be the largest part and are read only on demand. */
export interface NewChat extends StoredChat {
  messages: readonly unknown[];
}

/** The owner whose chats may be seen: an app sees only the chats that it stored, a member only their own. */
export interface ChatOwner {
  accountId: string;
  environment: Environment;
  /** null: of any app. */
  appId: string | null;
  /** null: of any person. */
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
  /** May be fewer than requested, because the size of a page is bounded. */
  chats: StoredChat[];
  hasMore: boolean;
  /**
   * Set if a search stopped before the end of the list: the last chat that was scanned, after which the next page
   * continues.
   */
  lastId?: string;
}

/** Stores chats. An expired one is never found, even before it is deleted. */
export interface ChatStore {
  /** Inserts all or none; existing chats stay unchanged. */
  insert(chats: readonly NewChat[]): Promise<void>;
  find(owner: ChatOwner, id: string, nowSeconds: number): Promise<StoredChat | undefined>;
  /** Reports whether `find` would find the chat, without reading its content. */
  has(owner: ChatOwner, id: string, nowSeconds: number): Promise<boolean>;
  findMessages(owner: ChatOwner, id: string, nowSeconds: number): Promise<readonly unknown[] | undefined>;
  /**
   * Lists chats by creation. Returns undefined if `after` is no chat of this owner; one that was deleted within the
   * last hour is still accepted, so that a client may delete while it pages. The scan of a search is bounded for each
   * page.
   */
  list(
    owner: ChatOwner,
    filter: ChatFilter,
    page: { after: string | undefined; limit: number; order: "asc" | "desc" },
    nowSeconds: number,
  ): Promise<ChatPage | undefined>;
  /** Returns false if there is no such chat. */
  setMetadata(
    owner: ChatOwner,
    id: string,
    metadata: Readonly<Record<string, string>>,
    nowSeconds: number,
  ): Promise<boolean>;
  /** Erases the content at once. Returns false if there is none. */
  delete(owner: ChatOwner, id: string, nowSeconds: number): Promise<boolean>;
  /** Deletes up to `limit` expired chats, and returns their number. */
  deleteExpired(nowSeconds: number, limit: number): Promise<number>;
}

/** Takes completed chats and stores them later, off the request path. */
export interface ChatWriter {
  /** Days to keep a chat; 0: nothing is stored. A reload may change it. */
  readonly retentionDays: number;
  /** `size` is about how many characters the chat has as JSON. */
  add(chat: NewChat, size: number): void;
  /** Logs that a completion that should have been stored was not. */
  notStored(accountId: string, reason: "too_large" | "unreadable" | "no_room" | "empty"): void;
  /** Resolves when earlier chats are stored or, after a logged failure, kept for a retry. */
  flush(): Promise<void>;
}
