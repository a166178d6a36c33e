// Chat completions that were kept because somebody asked for it, and where they are kept.
import type { Environment } from "../api-key.ts";

export interface StoredChat {
  /** The completion's id, made by us: engines may repeat theirs. */
  id: string;
  accountId: string;
  environment: Environment;
  keyId: string;
  /** The app that stored it; null for keys. */
  appId: string | null;
  /** The member whose own it is; null: the account's. */
  personId: string | null;
  model: string;
  /** Unix seconds. */
  createdAt: number;
  expiresAt: number;
  metadata: Readonly<Record<string, string>>;
  /** The request's members but for `model`, `messages`, `stream`, `stream_options`, `store` and `metadata`. */
  parameters: Readonly<Record<string, unknown>>;
  /** The completion object as the client got it, or what its stream amounts to. */
  completion: Readonly<Record<string, unknown>>;
}

/**
 * A chat with the request's messages, which may be by far the largest part and are read only where they are asked for.
 */
export interface NewChat extends StoredChat {
  messages: readonly unknown[];
}

/** The owner whose chats may be seen: an app sees only what it stored, a member only what is theirs. */
export interface ChatOwner {
  accountId: string;
  environment: Environment;
  /** null: whichever app stored them. */
  appId: string | null;
  /** null: whoever's they are. */
  personId: string | null;
}

export interface ChatFilter {
  model?: string;
  /** All of these, each with this value. */
  metadata?: Readonly<Record<string, string>>;
  /** Text that the messages or the answer must contain, in whatever case. */
  search?: string;
}

export interface ChatPage {
  /** May be fewer than were asked for: what a page may weigh in memory is bounded. */
  chats: StoredChat[];
  hasMore: boolean;
  /**
   * Set where a search ended before the list did: the last chat that it looked at, after which the next page goes on.
   */
  lastId?: string;
}

/** Stores chats. An expired one is never found, whether it was swept already or not. */
export interface ChatStore {
  /** All or none; those that are there already are left as they are. */
  insert(chats: readonly NewChat[]): Promise<void>;
  find(owner: ChatOwner, id: string, nowSeconds: number): Promise<StoredChat | undefined>;
  /** Whether `find` would find it; cheap, however large it is. */
  has(owner: ChatOwner, id: string, nowSeconds: number): Promise<boolean>;
  findMessages(owner: ChatOwner, id: string, nowSeconds: number): Promise<readonly unknown[] | undefined>;
  /**
   * Chats by creation. Undefined where `after` names no chat of this owner; one that was deleted within the last hour
   * still marks its place, so that a client may delete while it pages. What a search looks at for one page is bounded.
   */
  list(
    owner: ChatOwner,
    filter: ChatFilter,
    page: { after: string | undefined; limit: number; order: "asc" | "desc" },
    nowSeconds: number,
  ): Promise<ChatPage | undefined>;
  /** False where there is none. */
  setMetadata(
    owner: ChatOwner,
    id: string,
    metadata: Readonly<Record<string, string>>,
    nowSeconds: number,
  ): Promise<boolean>;
  /** Erases the content at once. False where there is none. */
  delete(owner: ChatOwner, id: string, nowSeconds: number): Promise<boolean>;
  /** Deletes up to `limit` that have expired; gives how many. */
  deleteExpired(nowSeconds: number, limit: number): Promise<number>;
}

/** Takes recorded chats and stores them later, off the request path. */
export interface ChatWriter {
  /** Days for which a chat is kept; 0: nothing is stored. A reload may change it. */
  readonly retentionDays: number;
  /** `size` is about how many characters the chat has as JSON. */
  add(chat: NewChat, size: number): void;
  /** Logs that a completion that should have been kept is not. */
  notStored(accountId: string, reason: "too_large" | "unreadable" | "no_room" | "empty"): void;
  /** Resolves when what was added before is stored or, after a failure that was logged, kept for the next try. */
  flush(): Promise<void>;
}
