// Stored responses and their conversations, and the port of their store.
import type { Environment } from "../api-key.ts";
import type { ChatOwner } from "./stored-chat.ts";

/** An item of a conversation, or a response, as JSON for the client. */
export type StoredItem = Readonly<Record<string, unknown>>;

/**
 * The owner whose stored objects may be seen. The rules of chats apply; besides, a key that another key made sees only
 * the objects of keys with the same maker.
 */
export interface ResponseOwner extends ChatOwner {
  /** The limit id of the key that made the presented one, which a rotation keeps; null: any maker. */
  madeBy: string | null;
  /** The calling key. If several objects have the same id, its own are found first. */
  keyId?: string;
}

export type ResponseStatus = "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";

/** The members of a stored response without its content. */
export interface ResponseRow {
  /** An id of the gateway, because engines may repeat theirs. */
  id: string;
  accountId: string;
  environment: Environment;
  keyId: string;
  /** The app that made the response; null for keys. */
  appId: string | null;
  /** The member who owns the response; null: the account. */
  personId: string | null;
  /** The limit id of the key that made the creating key; null: none. */
  madeBy: string | null;
  model: string;
  /** Unix seconds. */
  createdAt: number;
  expiresAt: number;
  status: ResponseStatus;
  /** Id of the response that this response continues. */
  previousId: string | null;
  conversationId: string | null;
  /** True if the response was requested in the background. */
  background: boolean;
}

export interface StoredResponse extends ResponseRow {
  /** The response as the client got it, with its output; for an unfinished one, its current state. */
  response: StoredItem;
  /** The items of the response's own request, each with an id, without earlier items of the conversation. */
  input: readonly StoredItem[];
}

/** The earlier items of a conversation. */
export interface ResponseChain {
  /** Items in order: for each response its input and then its output. */
  items: readonly StoredItem[];
  /** The items' length in characters of JSON. */
  size: number;
}

/**
 * The reason why a chain cannot be read: a response is missing for this owner, a response is unfinished, or the chain
 * is too large.
 */
export type ChainFault = { missing: string } | { tooLarge: true } | { unfinished: string };

/** Called before this many characters of JSON are read. If it returns false, the chain counts as too large. */
export type MayRead = (size: number) => boolean;

/** Measures the chats, responses and conversations of an account. */
export interface StoredSizes {
  /** Returns characters of JSON plus an estimate for their rows. */
  sizeOf(accountId: string): Promise<number>;
}

/** Stores responses. An expired one is never found, even before it is deleted. The content is encrypted. */
export interface ResponseStore {
  /**
   * Inserts all or none; existing responses stay unchanged. A completed or incomplete response appends its items to its
   * conversation, as `BackgroundStore.end` does; a failed or cancelled one does not. Calls `mayCommit` last: if it
   * returns false, nothing is stored and the call rejects.
   */
  insert(responses: readonly StoredResponse[], mayCommit?: () => boolean): Promise<void>;
  find(owner: ResponseOwner, id: string, nowSeconds: number): Promise<StoredResponse | undefined>;
  /**
   * Returns the items of the response `id` and of all responses that it continues. A chain of more than `maxSize`
   * characters is not read, and is a fault.
   */
  chain(
    owner: ResponseOwner,
    id: string,
    nowSeconds: number,
    maxSize: number,
    mayRead?: MayRead,
  ): Promise<ResponseChain | ChainFault>;
  /**
   * Returns items by their own ids, from responses or conversations of this owner. Missing items are left out, and so
   * are all items from the first that `mayRead` refuses.
   */
  items(
    owner: ResponseOwner,
    ids: readonly string[],
    nowSeconds: number,
    mayRead?: MayRead,
  ): Promise<ReadonlyMap<string, StoredItem>>;
  /** Erases the content at once. Returns false if there is none. */
  delete(owner: ResponseOwner, id: string, nowSeconds: number): Promise<boolean>;
  /** Deletes up to `limit` expired responses, conversations or events, and returns their number. */
  deleteExpired(nowSeconds: number, limit: number): Promise<number>;
}

/** Consecutive events of a background response, numbered from `first`. */
export interface EventBatch {
  first: number;
  /** The data of each event as JSON text. */
  events: readonly string[];
}

export type RunState =
  | { status: ResponseStatus; isCancelled: boolean }
  /** Undefined: the response was deleted or has expired. */
  | undefined;

/** A response without a recent heartbeat of its process. */
export interface AbandonedResponse {
  id: string;
  /** Unix seconds of the last heartbeat. */
  seenAt: number;
}

/** Stores background responses, which run without a connected client. */
export interface BackgroundStore {
  /**
   * Stores new events and a heartbeat, and reports whether to cancel. Without `response`, the stored response stays
   * unchanged. Events whose first number is stored already replace the earlier ones.
   */
  progress(
    id: string,
    state: { status: ResponseStatus; response?: StoredItem; events?: EventBatch },
    nowSeconds: number,
  ): Promise<RunState>;
  /** Ends the response with its last events and its final status. Returns false if it had ended before. */
  end(
    id: string,
    state: { status: ResponseStatus; response: StoredItem; events?: EventBatch },
    nowSeconds: number,
  ): Promise<boolean>;
  /** Asks the process that runs the response to stop. Returns undefined if this owner has no such response. */
  requestCancel(owner: ResponseOwner, id: string, nowSeconds: number): Promise<ResponseRow | undefined>;
  /** Returns the state of the response without its content. */
  state(id: string, nowSeconds: number): Promise<RunState>;
  /** Returns the number of the response's last event; -1 if it has no events, or not any more. */
  lastEvent(id: string): Promise<number>;
  /** Returns events numbered above `after` (-1: all), in order, about `maxSize` characters at most. */
  events(id: string, after: number, maxSize: number): Promise<readonly EventBatch[]>;
  /** Returns unfinished responses without a heartbeat since `seenBefore`, the oldest heartbeat first. */
  abandoned(seenBefore: number, nowSeconds: number, limit: number): Promise<readonly AbandonedResponse[]>;
  /**
   * Ends an abandoned response as failed. `end` makes the final response from the stored one, and its last event, which
   * gets the passed number. Returns false if the response got a heartbeat meanwhile, or has ended.
   */
  endAbandoned(
    abandoned: AbandonedResponse,
    end: (response: StoredItem, number: number) => { response: StoredItem; event: string },
    nowSeconds: number,
  ): Promise<boolean>;
}

/** A conversation: items that several responses read and extend. */
export interface Conversation extends ResponseOwnerColumns {
  id: string;
  /** Unix seconds. */
  createdAt: number;
  /** Unix seconds; each added item moves it later. */
  expiresAt: number;
  metadata: Readonly<Record<string, string>>;
}

type ResponseOwnerColumns = Pick<ResponseRow, "accountId" | "environment" | "keyId" | "appId" | "personId" | "madeBy">;

export interface ItemPage {
  items: readonly StoredItem[];
  hasMore: boolean;
}

export interface ConversationStore {
  create(conversation: Conversation, items: readonly StoredItem[]): Promise<void>;
  find(owner: ResponseOwner, id: string, nowSeconds: number): Promise<Conversation | undefined>;
  setMetadata(
    owner: ResponseOwner,
    id: string,
    metadata: Readonly<Record<string, string>>,
    nowSeconds: number,
  ): Promise<Conversation | undefined>;
  /** Deletes the conversation; its items stay with their responses. Returns false if there is none. */
  delete(owner: ResponseOwner, id: string, nowSeconds: number): Promise<boolean>;
  /**
   * Appends items, each with an id, and returns them as stored: an item whose id exists in the conversation gets
   * another. Returns undefined if there is no such conversation.
   */
  add(
    owner: ResponseOwner,
    id: string,
    items: readonly StoredItem[],
    expiresAt: number,
    nowSeconds: number,
  ): Promise<readonly StoredItem[] | undefined>;
  /** Returns undefined if the conversation or the item `after` does not exist. */
  list(
    owner: ResponseOwner,
    id: string,
    page: { after: string | undefined; limit: number; order: "asc" | "desc" },
    nowSeconds: number,
  ): Promise<ItemPage | undefined>;
  /** Returns all items in order, bounded like a chain. */
  all(
    owner: ResponseOwner,
    id: string,
    nowSeconds: number,
    maxSize: number,
    mayRead?: MayRead,
  ): Promise<ResponseChain | ChainFault>;
  findItem(owner: ResponseOwner, id: string, itemId: string, nowSeconds: number): Promise<StoredItem | undefined>;
  deleteItem(owner: ResponseOwner, id: string, itemId: string, nowSeconds: number): Promise<boolean>;
}
