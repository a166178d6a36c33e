// Responses and conversations as tests store them, and the seal of a database.
import type {
  Conversation,
  ResponseOwner,
  StoredItem,
  StoredResponse,
} from "../../src/domain/models/stored-response.ts";
import type { SealFor } from "../../src/domain/seal.ts";
import { openContentKey } from "../../src/policy/credentials/content-key.ts";
import type { Database } from "../../src/storage/sql/database.ts";
import { SqlContentKeyStore } from "../../src/storage/tables/content-key-store.ts";

/** Unix seconds. */
export const now = 1_800_000_000;
export const day = 86_400;

/** Whoever may see all of the account in this environment. */
export const owner: ResponseOwner = {
  ...{ accountId: "acct_1", environment: "live", appId: null, personId: null, madeBy: null },
};

/** An owner who differs from one that has all marks, each in one alone. */
export const strangers: readonly Partial<ResponseOwner>[] = [
  { accountId: "acct_2" },
  { environment: "dev" },
  { appId: "app_2" },
  { personId: "usr_2" },
  { madeBy: "lim_2" },
];

/** What is stored by somebody who has them all. */
export const marked = { appId: "app_1", personId: "usr_1", madeBy: "lim_1" } as const;

export function sealOf(db: Database): Promise<SealFor> {
  return openContentKey(new SqlContentKeyStore(db), new Uint8Array(32).fill(7));
}

export function message(id: string, text: string, role: "user" | "assistant" = "user"): StoredItem {
  const type = role === "user" ? "input_text" : "output_text";
  return { type: "message", id, role, content: [{ type, text }] };
}

/** One that was asked `Hi` and answered `Hello`, with items that are named by its id. */
export function stored(id: string, more: Partial<StoredResponse> = {}): StoredResponse {
  const status = more.status ?? "completed";
  return {
    ...owner,
    id,
    keyId: "key_1",
    model: "m",
    createdAt: now,
    expiresAt: now + day,
    status,
    previousId: null,
    conversationId: null,
    background: false,
    input: [message(`${id}_in`, "Hi")],
    response: { id, object: "response", status, output: [message(`${id}_out`, "Hello", "assistant")] },
    ...more,
  };
}

export function conversation(id: string, more: Partial<Conversation> = {}): Conversation {
  return { ...owner, id, keyId: "key_1", createdAt: now, expiresAt: now + day, metadata: { topic: "rivers" }, ...more };
}

/** Their ids, in their order. */
export function idsOf(items: readonly StoredItem[]): unknown[] {
  return items.map((item) => item["id"]);
}
