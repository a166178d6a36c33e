// Converts stored responses, their events and conversations between sealed rows and records.
import { createHash } from "node:crypto";
import type {
  Conversation,
  ResponseOwner,
  ResponseRow,
  StoredItem,
  StoredResponse,
} from "../../../domain/models/stored-response.ts";
import type { Database } from "../../sql/database.ts";
import { reached } from "../../sql/outage.ts";
import { flag, integer, table, text } from "../../sql/table.ts";

const ownerColumns = { accountId: text, environment: text, keyId: text, appId: text, personId: text, madeBy: text };

/** The columns of a response besides its content. */
export const storedResponses = table<ResponseRow>({
  id: text,
  ...ownerColumns,
  model: text,
  createdAt: integer,
  expiresAt: integer,
  status: text,
  previousId: text,
  conversationId: text,
  background: flag,
});

/** A conversation without its metadata, which is sealed. */
export const conversations = table<Omit<Conversation, "metadata">>({
  id: text,
  ...ownerColumns,
  createdAt: integer,
  expiresAt: integer,
});

/** The contexts of seals: a sealed text opens only in its own row and column. */
export const sealPurposes = {
  input: (id: string) => `stored_responses.input ${id}`,
  response: (id: string) => `stored_responses.response ${id}`,
  events: (id: string, first: number) => `response_events ${id} ${first}`,
  metadata: (id: string) => `conversations ${id}`,
  /** `item` is the digest of an item's id, from `itemKeyOf`. */
  item: (conversationId: string, item: string) => `conversation_items ${conversationId} ${item}`,
} as const;

/**
 * Returns the digest by which an item is found. Ids themselves are not stored, because a client may use any text as an
 * id.
 */
export function itemKeyOf(itemId: string): string {
  return createHash("sha256").update(itemId).digest("base64url");
}

/** Returns undefined for an item without an id, which cannot be referenced. */
export function idOf(item: StoredItem): string | undefined {
  const id = item["id"];
  return typeof id === "string" ? id : undefined;
}

export function outputOf(response: StoredItem): readonly StoredItem[] {
  const output = response["output"];
  return Array.isArray(output) ? output : [];
}

/** Returns the length of items in characters of JSON. */
export function sizeOf(items: readonly StoredItem[]): number {
  return items.reduce((sum, item) => sum + JSON.stringify(item).length, 0);
}

export function isEnded({ status }: Pick<StoredResponse, "status">): boolean {
  return status !== "queued" && status !== "in_progress";
}

/**
 * Selects rows of this owner by expressions that no index serves, so rows are read by id, however many the account has.
 * `c` is the table.
 */
export function ownedBy(db: Database, { accountId, environment, appId, personId, madeBy }: ResponseOwner) {
  const ofApp = appId === null ? db`` : db`AND c.app_id || '' = ${appId}`;
  const ofPerson = personId === null ? db`` : db`AND c.person_id || '' = ${personId}`;
  const ofMaker = madeBy === null ? db`` : db`AND c.made_by || '' = ${madeBy}`;
  return db`c.account_id || '' = ${accountId} AND c.environment || '' = ${environment} ${ofApp} ${ofPerson} ${ofMaker}`;
}

/**
 * Selects conversations, `c`, of this account and environment, because an added item must not reach another owner's
 * conversation.
 */
export function ownerIs(db: Database, { accountId, environment }: Pick<ResponseOwner, "accountId" | "environment">) {
  return db`c.account_id || '' = ${accountId} AND c.environment || '' = ${environment}`;
}

/** Selects responses that this owner may see. `c` is `stored_responses`. */
export function visible(db: Database, owner: ResponseOwner, nowSeconds: number) {
  return db`${ownedBy(db, owner)} AND c.expires_at > ${nowSeconds} AND c.deleted_at IS NULL`;
}

/** Throws `service_unavailable` for every failure, because an error must not quote content. */
export function available<Value>(work: Promise<Value> | PromiseLike<Value>): Promise<Value> {
  return reached("Stored responses", work);
}

/** Maximum rows of one statement, because the number of parameters is bounded. */
const rowsAtOnce = 1_000;
/** Rows that SQLite writes in a few milliseconds, during which requests wait. */
const rowsOfTurn = 250;

/** Processes some rows at a time, with room for other work in between. */
export async function turnByTurn<Row>(
  rows: readonly Row[],
  work: (some: readonly Row[]) => Promise<void>,
): Promise<void> {
  let isFirst = true;
  for (const some of inPieces(rows, rowsOfTurn)) {
    if (!isFirst) await new Promise(setImmediate);
    isFirst = false;
    await work(some);
  }
}

export function* inPieces<Part>(all: readonly Part[], most = rowsAtOnce): Generator<readonly Part[]> {
  for (let start = 0; start < all.length; start += most) yield all.slice(start, start + most);
}
