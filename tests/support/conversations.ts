// Conversations as tests make them, straight in the database of a server.
import { join } from "node:path";
import { SQL } from "bun";
import { newItemId } from "../../src/domain/models/item-id.ts";
import type { ResponseOwner, StoredItem } from "../../src/domain/models/stored-response.ts";
import { openContentKey } from "../../src/policy/credentials/content-key.ts";
import { deriveKeys, loadSecrets } from "../../src/storage/files/secret-file.ts";
import type { Database } from "../../src/storage/sql/database.ts";
import { SqlContentKeyStore } from "../../src/storage/tables/content-key-store.ts";
import { SqlConversationStore } from "../../src/storage/tables/responses/conversation-store.ts";
import type { TestServer } from "./headrace.ts";

const nowSeconds = () => Math.floor(Date.now() / 1000);

/** A conversation of the first key, with these texts of its user in it. */
export async function makeConversation(server: TestServer, ...texts: readonly string[]): Promise<string> {
  const { record } = server.firstKey;
  const id = `conv_${Bun.randomUUIDv7().replaceAll("-", "")}`;
  const items = texts.map((text) => ({
    ...{ id: newItemId("message"), type: "message", role: "user", status: "completed" },
    content: [{ type: "input_text", text }],
  }));
  const { accountId, environment } = record;
  await withStore(server, (store) =>
    store.create(
      {
        ...{ id, accountId, environment, keyId: record.id, appId: null, personId: null, madeBy: null },
        ...{ createdAt: nowSeconds(), expiresAt: nowSeconds() + 3_600, metadata: {} },
      },
      items,
    ),
  );
  return id;
}

/** All items of it, in their order. */
export async function itemsOf(server: TestServer, id: string): Promise<readonly StoredItem[]> {
  const { accountId, environment } = server.firstKey.record;
  const owner: ResponseOwner = { accountId, environment, appId: null, personId: null, madeBy: null };
  const all = await withStore(server, (store) => store.all(owner, id, nowSeconds(), 1_000_000));
  if (!("items" in all)) throw new Error("There is no such conversation.");
  return all.items;
}

async function withStore<Result>(
  { dataDir }: TestServer,
  work: (store: SqlConversationStore) => Promise<Result>,
): Promise<Result> {
  const db: Database = new SQL({ adapter: "sqlite", filename: join(dataDir, "headrace.db") });
  try {
    const keys = deriveKeys(loadSecrets(dataDir, undefined), "content-key-seal-v1");
    return await work(new SqlConversationStore(db, await openContentKey(new SqlContentKeyStore(db), keys)));
  } finally {
    await db.close();
  }
}
