// Responses that are kept, the conversations that they belong to, and where they are kept.
import type { Environment } from "../api-key.ts";
import type { ChatOwner } from "./stored-chat.ts";

/** An item of a conversation, or a response, as the client gets it: JSON. */
export type StoredItem = Readonly<Record<string, unknown>>;

/** Who may see what is kept: as with chats, and of keys that a key made only those that the same key made. */
export interface ResponseOwner extends ChatOwner {
  /** The limit id of the key behind the presented one, which a rotation keeps; null: whoever made the key. */
  madeBy: string | null;
  /** The key that asks: what it made itself is found first where several have the same id. */
  keyId?: string;
}

export type ResponseStatus = "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";

/** What is told of a response beside its content. */
export interface ResponseRow {
  /** Made by us: engines may repeat theirs. */
  id: string;
  accountId: string;
  environment: Environment;
  keyId: string;
  /** The app that made it; null for keys. */
  appId: string | null;
  /** The member whose own it is; null: the account's. */
  personId: string | null;
  /** The limit id of the key behind the one that made it; null: there is none. */
  madeBy: string | null;
  model: string;
  /** Unix seconds. */
  createdAt: number;
  expiresAt: number;
  status: ResponseStatus;
  /** The response that it goes on from. */
  previousId: string | null;
  conversationId: string | null;
  /** Whether it was asked for in the background. */
  background: boolean;
}

export interface StoredResponse extends ResponseRow {
  /** The response as the client got it, its output included; of one that has not ended, as it stands. */
  response: StoredItem;
  /** The items of its own request, each with an id, without those of what it goes on from. */
  input: readonly StoredItem[];
}

/** Where the items of a conversation so far come from. */
export interface ResponseChain {
  /** Those of the first response first, of each its input and then its output. */
  items: readonly StoredItem[];
  /** Characters of JSON that they have. */
  size: number;
}

/** Why there is no chain: it, or one before it, is not there for this owner; or there is more of it than is allowed. */
export type ChainFault = { missing: string } | { tooLarge: true } | { unfinished: string };

/** Asked before so many characters of JSON are read: where it says no they are not, as if there were too many. */
export type MayRead = (size: number) => boolean;

/** Sums chats, responses and conversations of an account. */
export interface StoredSizes {
  /** Characters of JSON, and about what their rows take. */
  sizeOf(accountId: string): Promise<number>;
}

/** Stores responses. An expired one is never found, whether it was swept already or not; content is sealed. */
export interface ResponseStore {
  /**
   * All or none; those that are there already are left as they are. One that is completed or incomplete puts its items
   * behind those of its conversation, as `BackgroundStore.end` does; what failed or was cancelled leaves that as it was.
   * `mayCommit` is asked last: if it returns false, nothing is stored and the call rejects.
   */
  insert(responses: readonly StoredResponse[], mayCommit?: () => boolean): Promise<void>;
  find(owner: ResponseOwner, id: string, nowSeconds: number): Promise<StoredResponse | undefined>;
  /**
   * The items of the response `id` and of all that it goes on from, bounded by `maxSize` characters: what is longer is not
   * read.
   */
  chain(
    owner: ResponseOwner,
    id: string,
    nowSeconds: number,
    maxSize: number,
    mayRead?: MayRead,
  ): Promise<ResponseChain | ChainFault>;
  /**
   * Items by their own ids, of responses or conversations of this owner; left out are those that are not there, and all
   * from the first on that `mayRead` says no to.
   */
  items(
    owner: ResponseOwner,
    ids: readonly string[],
    nowSeconds: number,
    mayRead?: MayRead,
  ): Promise<ReadonlyMap<string, StoredItem>>;
  /** Erases the content at once. False where there is none. */
  delete(owner: ResponseOwner, id: string, nowSeconds: number): Promise<boolean>;
  /** Deletes up to `limit` responses, conversations or events that have expired; gives how many. */
  deleteExpired(nowSeconds: number, limit: number): Promise<number>;
}

/** Events of a response in the background that belong together: numbered from `first` on, without a gap. */
export interface EventBatch {
  first: number;
  /** The data of each, as JSON text. */
  events: readonly string[];
}

export type RunState =
  | { status: ResponseStatus; isCancelled: boolean }
  /** It was deleted, or has expired. */
  | undefined;

/** A response that nobody has worked on for a while. */
export interface AbandonedResponse {
  id: string;
  /** Unix seconds: when somebody last did. */
  seenAt: number;
}

/** Responses that go on without their client. */
export interface BackgroundStore {
  /**
   * Notes what came of it meanwhile and that somebody works on it still; tells whether it is to be cancelled. Without a
   * `response` that stays as it is. Events from the same one on as before take the place of those.
   */
  progress(
    id: string,
    state: { status: ResponseStatus; response?: StoredItem; events?: EventBatch },
    nowSeconds: number,
  ): Promise<RunState>;
  /** Ends it, with its last events: the row has its last status from then on. False where it had ended before. */
  end(
    id: string,
    state: { status: ResponseStatus; response: StoredItem; events?: EventBatch },
    nowSeconds: number,
  ): Promise<boolean>;
  /** Asks the process that works on the response to stop. Undefined where this owner has no such response. */
  requestCancel(owner: ResponseOwner, id: string, nowSeconds: number): Promise<ResponseRow | undefined>;
  /** What is to be known of it without its content. */
  state(id: string, nowSeconds: number): Promise<RunState>;
  /** The number of its last event; -1 where there are none, or not any more. */
  lastEvent(id: string): Promise<number>;
  /** Events numbered above `after` (-1: all), in their order, at most about `maxSize` characters. */
  events(id: string, after: number, maxSize: number): Promise<readonly EventBatch[]>;
  /** Those that have not ended and that nobody has worked on since that time; longest ago first. */
  abandoned(seenBefore: number, nowSeconds: number, limit: number): Promise<readonly AbandonedResponse[]>;
  /**
   * Ends one as failed that nobody has worked on since. `end` makes the last response of what there was, and its last event,
   * which has that number. False where somebody has, or it has ended.
   */
  endAbandoned(
    abandoned: AbandonedResponse,
    end: (response: StoredItem, number: number) => { response: StoredItem; event: string },
    nowSeconds: number,
  ): Promise<boolean>;
}

/** A conversation: items that several responses read and add to. */
export interface Conversation extends ResponseOwnerColumns {
  id: string;
  /** Unix seconds. */
  createdAt: number;
  /** What adds to it moves this on. */
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
  /** Its items stay with the responses that made them. False where there is none. */
  delete(owner: ResponseOwner, id: string, nowSeconds: number): Promise<boolean>;
  /**
   * Puts items, each with an id, behind those that there are, and gives them as they are kept: one whose id the
   * conversation has already gets another. Undefined where there is no such conversation.
   */
  add(
    owner: ResponseOwner,
    id: string,
    items: readonly StoredItem[],
    expiresAt: number,
    nowSeconds: number,
  ): Promise<readonly StoredItem[] | undefined>;
  /** Undefined where there is no such conversation, or `after` names no item of it. */
  list(
    owner: ResponseOwner,
    id: string,
    page: { after: string | undefined; limit: number; order: "asc" | "desc" },
    nowSeconds: number,
  ): Promise<ItemPage | undefined>;
  /** All items in their order, bounded as a chain is. */
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
