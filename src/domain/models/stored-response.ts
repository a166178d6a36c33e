// Stored responses and their conversations, and the port of their store.
import type { Environment } from "../api-key.ts";
import type { ChatOwner } from "./stored-chat.ts";

/** An item of a conversation, or a response, as JSON for the client. */
export type StoredItem = Readonly<Record<string, unknown>>;

/**
 * The party whose stored objects may be seen. The rules for chats apply. In addition, a key that another key made sees
 * only objects of keys with the same maker.
 */
export interface ResponseOwner extends ChatOwner {
  /**
   * The limit id, which a rotation keeps, of the key that made the presented key. Only objects of keys with this maker
   * may be seen. Null means objects of any maker.
   */
  madeBy: string | null;
  /** The calling key. If several objects have the same id, objects of this key are found first. */
  keyId?: string;
}

export type ResponseStatus = "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";

/** A stored response without its content. */
export interface ResponseRow {
  /** The response's id. The gateway makes it, because engines may use an id twice. */
  id: string;
  accountId: string;
  environment: Environment;
  keyId: string;
  /** The app that made the response. Null if a key did. */
  appId: string | null;
  /** The member who owns the response. Null if the account does. */
  personId: string | null;
  /** The limit id of the key that made the creating key. Null if no key did. */
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
  /** The response as the client got it, with its output. If it is unfinished, its current state. */
  response: StoredItem;
  /**
   * The input items of this response's request, each with an id. Earlier items of the conversation are not included.
   */
  input: readonly StoredItem[];
}

/** The items of a response and of all responses that it continues. */
export interface ResponseChain {
  /** For each response in order, its input and then its output. */
  items: readonly StoredItem[];
  /** The items' length in characters of JSON. */
  size: number;
}

/**
 * The reason why a chain of responses cannot be read: a response is missing for this owner, a response is unfinished,
 * or the chain is too large.
 */
export type ChainFault = { missing: string } | { tooLarge: true } | { unfinished: string };

/**
 * Called with the number of JSON characters that are about to be read. If it returns false, nothing is read and the
 * chain counts as too large.
 */
export type MayRead = (size: number) => boolean;

/** Measures how much an account has stored: chats, responses and conversations. */
export interface StoredSizes {
  /** Returns the total characters of JSON, plus an estimate for the rows. */
  sizeOf(accountId: string): Promise<number>;
}

/** Stores responses, with encrypted content. An expired response is never found, even before it is deleted. */
export interface ResponseStore {
  /**
   * Inserts all responses or none. Existing responses stay unchanged. A completed or incomplete response also appends
   * its items to its conversation; a failed or cancelled one does not. Calls `mayCommit` last. If it returns false,
   * nothing is stored and the call rejects.
   */
  insert(responses: readonly StoredResponse[], mayCommit?: () => boolean): Promise<void>;
  find(owner: ResponseOwner, id: string, nowSeconds: number): Promise<StoredResponse | undefined>;
  /**
   * Returns the items of the response `id` and of all responses that it continues. If these have more than `maxSize`
   * characters, nothing is read and a fault is returned.
   */
  chain(
    owner: ResponseOwner,
    id: string,
    nowSeconds: number,
    maxSize: number,
    mayRead?: MayRead,
  ): Promise<ResponseChain | ChainFault>;
  /**
   * Returns items by their ids, from responses or conversations of this owner. Missing items are left out. Once
   * `mayRead` refuses an item, this item and all later ones are left out too.
   */
  items(
    owner: ResponseOwner,
    ids: readonly string[],
    nowSeconds: number,
    mayRead?: MayRead,
  ): Promise<ReadonlyMap<string, StoredItem>>;
  /** Deletes a response and erases its content immediately. Returns false if the response does not exist. */
  delete(owner: ResponseOwner, id: string, nowSeconds: number): Promise<boolean>;
  /** Deletes up to `limit` expired responses, conversations or events, and returns their number. */
  deleteExpired(nowSeconds: number, limit: number): Promise<number>;
}

/** Consecutive events of a background response. `first` is the number of the first event. */
export interface EventBatch {
  first: number;
  /** The data of each event as JSON text. */
  events: readonly string[];
}

export type RunState =
  | { status: ResponseStatus; isCancelled: boolean }
  /** Undefined if the response was deleted or has expired. */
  | undefined;

/** An unfinished response whose process has stopped sending heartbeats. */
export interface AbandonedResponse {
  id: string;
  /** Unix seconds of the last heartbeat. */
  seenAt: number;
}

/** Stores background responses, which keep running without their client. */
export interface BackgroundStore {
  /**
   * Stores new events and a heartbeat. Returns the status, and whether the response was cancelled. If `response` is
   * missing, the stored response stays unchanged. Events whose first number is stored already replace the stored ones.
   */
  progress(
    id: string,
    state: { status: ResponseStatus; response?: StoredItem; events?: EventBatch },
    nowSeconds: number,
  ): Promise<RunState>;
  /** Ends the response: stores its last events and its final status. Returns false if the response had ended before. */
  end(
    id: string,
    state: { status: ResponseStatus; response: StoredItem; events?: EventBatch },
    nowSeconds: number,
  ): Promise<boolean>;
  /** Requests that the process of the response stops it. Returns undefined if this owner has no such response. */
  requestCancel(owner: ResponseOwner, id: string, nowSeconds: number): Promise<ResponseRow | undefined>;
  /** Returns the state of the response without its content. */
  state(id: string, nowSeconds: number): Promise<RunState>;
  /** Returns the number of the response's last event. Returns -1 if no events are stored. */
  lastEvent(id: string): Promise<number>;
  /**
   * Returns events in order, beginning after the number `after` (-1 for all). The total is about `maxSize` characters
   * at most.
   */
  events(id: string, after: number, maxSize: number): Promise<readonly EventBatch[]>;
  /** Returns unfinished responses whose last heartbeat was before `seenBefore`, oldest first. */
  abandoned(seenBefore: number, nowSeconds: number, limit: number): Promise<readonly AbandonedResponse[]>;
  /**
   * Ends an abandoned response as failed. `end` makes the final response and its last event, from the stored response
   * and the event's number. Returns false if the response got a heartbeat meanwhile or has ended.
   */
  endAbandoned(
    abandoned: AbandonedResponse,
    end: (response: StoredItem, number: number) => { response: StoredItem; event: string },
    nowSeconds: number,
  ): Promise<boolean>;
}

/** A conversation: items that several responses use and add to. */
export interface Conversation extends ResponseOwnerColumns {
  id: string;
  /** Unix seconds. */
  createdAt: number;
  /** Unix seconds. Adding an item postpones the expiry. */
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
  /** Deletes the conversation. Its items stay with their responses. Returns false if it does not exist. */
  delete(owner: ResponseOwner, id: string, nowSeconds: number): Promise<boolean>;
  /**
   * Appends items and returns them as stored. Each item has an id. If the conversation already has an item with this
   * id, the new item gets another. Returns undefined if the conversation does not exist.
   */
  add(
    owner: ResponseOwner,
    id: string,
    items: readonly StoredItem[],
    expiresAt: number,
    nowSeconds: number,
  ): Promise<readonly StoredItem[] | undefined>;
  /** Lists items. Returns undefined if the conversation or the item `after` does not exist. */
  list(
    owner: ResponseOwner,
    id: string,
    page: { after: string | undefined; limit: number; order: "asc" | "desc" },
    nowSeconds: number,
  ): Promise<ItemPage | undefined>;
  /** Returns all items in order, or a fault if they have more than `maxSize` characters. */
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
