// Tests the installation's first key: created once for each environment, shown once, and never stored in plain text.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { type Credentials, openCredentials, pepper } from "../../../tests/support/credentials.ts";
import { parseApiKey } from "../../domain/api-key.ts";
import { accountScopes } from "../../domain/scope.ts";
import { ensureFirstKey } from "./first-key.ts";
import { keyDigest } from "./key-digest.ts";

let database: Credentials;

beforeEach(async () => {
  database = await openCredentials();
});

afterEach(() => database.close());

test("creates a first key with every account scope, hands it over, and stores only its digest", async () => {
  const { keys: store, accountId, clock, now } = database;
  const kept: { secret: string; validAlready: Promise<boolean> }[] = [];
  const keep = (secret: string) => {
    const found = store.findChainByDigest(keyDigest(secret, pepper));
    kept.push({ secret, validAlready: found.then((chain) => chain !== undefined) });
    return () => {};
  };
  const options = { accountId, environment: "live" as const, pepper, clock, keep };
  const { record, key = "" } = await ensureFirstKey(store, options);
  expect(parseApiKey(key)).toBe("live");
  expect(record).toMatchObject({
    accountId,
    createdAt: now.seconds,
    expiresAt: null,
    revokedAt: null,
    createdBy: null,
    parentId: null,
  });
  expect([...record.scopes]).toEqual([...accountScopes]);
  expect((await store.findChainByDigest(keyDigest(key, pepper)))?.keys).toEqual([record]);
  expect(kept.map(({ secret }) => secret)).toEqual([key]);
  expect(await kept[0]?.validAlready).toBe(false);
  const events = await database.audit.list({ action: "key.created" }, { after: undefined, limit: 9 });
  expect(events).toMatchObject([{ actor: { type: "system" }, targetId: record.id, accountId, at: now.seconds }]);
  for (const hidden of [key, record.digest]) expect(JSON.stringify(events)).not.toContain(hidden);

  // A second start returns the same record without the secret. In another mode, the key of that environment is created.
  expect(await ensureFirstKey(store, options)).toEqual({ record, key: undefined });
  expect((await ensureFirstKey(store, { ...options, environment: "dev" })).key).toStartWith("sk_dev_hr_");
  expect(kept).toHaveLength(2);
});

test("creates one first key if several processes start at once", async () => {
  const { keys: store, accountId, clock } = database;
  const kept = new Set<string>();
  const start = () =>
    ensureFirstKey(store, {
      ...{ accountId, environment: "live", pepper, clock },
      keep(key) {
        kept.add(key);
        return () => kept.delete(key);
      },
    });
  const started = await Promise.all([start(), start(), start(), start()]);
  const made = started.filter(({ key }) => key !== undefined);
  expect(made).toHaveLength(1);
  for (const { record } of started) expect(record).toEqual(made[0]?.record as typeof record);
  expect([...kept]).toEqual([made[0]?.key ?? ""]);
  expect(await database.audit.list({ action: "key.created" }, { after: undefined, limit: 9 })).toHaveLength(1);
});
