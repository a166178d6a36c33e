// Lists API keys in pages, filtered by status or search text.
import { z } from "zod";
import type { Clock } from "../../base/clock.ts";
import { invalidRequest } from "../../base/errors.ts";
import { type ApiKeyRecord, type KeyStore, ownOnly, type Principal } from "../../domain/principal.ts";
import { isHere, toWire } from "../../policy/manage/manage-keys.ts";
import { type KeyWire, keyShape, keyStatuses } from "../../wire/keys.ts";
import { type ListPage, listOf, pageOf, pageQuery } from "./list.ts";

/**
 * `batch` is the number of keys of one query, because SQLite runs on the main thread. `maxInspected` is the maximum
 * number of keys that are checked against a filter for one page.
 */
export const batch = 250;
const maxInspected = 5_000;
/** Number of creators of keys that are read in a row before other work runs. */
const makersAtOnce = 20;
/** Minimum length of a search for an id. Every id begins with `key_`, so shorter prefixes match all keys. */
const minIdStartLength = "key_".length + 1;

export const keyQuery = z.object({
  ...pageQuery,
  search: z.string().min(1).max(100).optional().meta({
    description:
      "1 to 100 characters: part of the name in any case, the id or a prefix of it, or the last four characters",
  }),
  status: z
    .enum(keyStatuses)
    .optional()
    .meta({ description: `one of ${keyStatuses.join(", ")}` }),
  made_by: z.string().min(1).max(100).optional().meta({
    description: "the id of a person or key: only keys that they made, and a member's own keys",
  }),
});
export const keyList = listOf(keyShape, "ApiKeyList");

type Keys = Pick<KeyStore, "findChainById" | "listKeys">;

/**
 * Returns one page of keys. Throws `invalid_request` for an unknown cursor. A filtered page may have few keys, because
 * only some keys are checked for a page. `last_id` is the last key that was checked.
 */
export async function keysPage(
  { limit, after, search, status, made_by: madeBy }: z.output<typeof keyQuery>,
  principal: Principal,
  { keys, clock }: { keys: Keys; clock: Clock },
): Promise<ListPage<KeyWire>> {
  if (after !== undefined) await requireCursor(after, principal, keys);
  const toWireHere = wireOf(keys, clock.nowSeconds());
  if (search === undefined && status === undefined && madeBy === undefined) {
    const records = await keys.listKeys(cursorOf(principal), { after, limit: limit + 1 });
    const shown: KeyWire[] = [];
    for (const record of records) shown.push(await toWireHere(record));
    return pageOf(shown, limit);
  }
  const named = search === undefined ? () => true : isNamed(search);
  const made = (key: ApiKeyRecord) => madeBy === undefined || isCreatedDirectlyBy(key, madeBy);
  const found: KeyWire[] = [];
  let last = after;
  for (let inspected = 0; inspected < maxInspected; inspected += batch) {
    const records = await keys.listKeys(cursorOf(principal), { after: last, limit: batch });
    for (const record of records.filter((key) => made(key) && named(key))) {
      const key = await toWireHere(record);
      if (status === undefined || key.status === status) found.push(key);
      if (found.length > limit) return pageOf(found, limit);
    }
    if (records.length < batch) return pageOf(found, limit);
    last = records.at(-1)?.id;
    await new Promise(setImmediate);
  }
  return { ...pageOf(found, limit), last_id: last ?? null, has_more: true };
}

function cursorOf(principal: Principal) {
  const own = ownOnly(principal);
  const { account, environment } = principal;
  return { accountId: account.id, environment, ...(own === null ? {} : { personId: own }) };
}

/** Throws for an unknown cursor. Otherwise the list would start again or skip keys, and the client would not notice. */
async function requireCursor(after: string, principal: Principal, keys: Keys): Promise<void> {
  const key = (await keys.findChainById(after))?.keys[0];
  if (key?.kind === "key" && isHere(principal, key)) return;
  throw invalidRequest("after: must be the id of a key of this list, such as the last one shown.");
}

/**
 * Reports whether the person or key with this id created the key, or whether the key is that member's own. Keys that
 * those keys created do not count. No database index finds these keys.
 */
export function isCreatedDirectlyBy({ createdBy, personId }: ApiKeyRecord, id: string): boolean {
  return createdBy === id || personId === id;
}

function isNamed(search: string): (key: ApiKeyRecord) => boolean {
  const text = search.toLowerCase();
  return ({ name, id, last4 }) =>
    name.toLowerCase().includes(text) ||
    last4.toLowerCase() === text ||
    (text.length >= minIdStartLength && id.startsWith(text));
}

/** Returns a function that converts a key to JSON. The function reads each creator only once. */
function wireOf(keys: Keys, nowSeconds: number): (record: ApiKeyRecord) => Promise<KeyWire> {
  const makers = new Map<string, readonly ApiKeyRecord[]>();
  return async (record) => {
    const { parentId } = record;
    if (parentId !== null && !makers.has(parentId)) {
      if (makers.size % makersAtOnce === makersAtOnce - 1) await new Promise(setImmediate);
      makers.set(parentId, (await keys.findChainById(parentId))?.keys ?? []);
    }
    return toWire(record, makers.get(parentId ?? "") ?? [], nowSeconds);
  };
}
