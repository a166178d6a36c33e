// Tests the last use of keys: known soon, written seldom, and not lost if the store is away for a while.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { type Credentials, openCredentials, presented, until } from "../../../tests/support/credentials.ts";
import { KeyActivity, type KeyUse } from "./key-activity.ts";

let all: Credentials;

beforeEach(async () => {
  all = await openCredentials();
});

afterEach(() => all.close());

const unused = (keyId: string): KeyUse => ({ keyId, seconds: Number.NEGATIVE_INFINITY, isWaiting: false });
const usedAt = (activity: KeyActivity, seconds: number, ...ids: string[]) => {
  const uses = ids.map(unused);
  for (const use of uses) activity.used(use, seconds);
  return uses;
};
const lastUsed = async (id: string) => (await all.keys.findChainById(id))?.keys[0].lastUsedAt;
const writes = () => all.keySwitch.calls["touchKeys"] ?? 0;

test("writes a thousand uses of a key once, and counts no refusals", async () => {
  const [used, refused] = [await all.addKey(), await all.addKey("live", { revokedAt: 1 })];
  for (let i = 0; i < 1_000; i++) {
    all.now.seconds++;
    await all.authenticator.authenticate(presented({ apiKey: used.secret }));
  }
  const attempt = async () => all.authenticator.authenticate(presented({ apiKey: refused.secret }));
  await expect(attempt()).rejects.toThrow("Invalid API key provided");
  expect(writes()).toBe(0);
  await all.activity.flush();
  expect([await lastUsed(used.id), await lastUsed(refused.id)]).toEqual([all.now.seconds, null]);
  expect(writes()).toBe(1);
});

test("writes the time of a key again when the key is used again", async () => {
  const { id, secret } = await all.addKey();
  for (let i = 0; i < 3; i++) {
    all.now.seconds += 5;
    await all.authenticator.authenticate(presented({ apiKey: secret }));
    await all.activity.flush();
    expect(await lastUsed(id)).toBe(all.now.seconds);
  }
  expect(writes()).toBe(3);
});

test("writes the times of keys in the background", async () => {
  const { id } = await all.addKey();
  const activity = new KeyActivity({ keys: all.keys, log: all.log, flushMs: 5 });
  usedAt(activity, 1_800_000_007, id);
  await until(async () => (await lastUsed(id)) === 1_800_000_007);
});

test("writes the keys that wait longest first, a few at a time, and all at shutdown", async () => {
  const written: [string, number][][] = [];
  const keys = { touchKeys: async (batch: ReadonlyMap<string, number>) => void written.push([...batch]) };
  const activity = new KeyActivity({ keys, log: all.log, flushMs: 1, maxAtOnce: 2 });
  const [first = unused("")] = usedAt(activity, 1, "a", "b", "c", "d", "e", "f");
  // A key in constant use neither loses its turn nor takes that of another.
  activity.used(first, 2);
  await until(() => written.length === 2);
  await activity.close();
  expect(written).toEqual([
    [
      ["a", 2],
      ["b", 1],
    ],
    [
      ["c", 1],
      ["d", 1],
    ],
    [
      ["e", 1],
      ["f", 1],
    ],
  ]);
});

test("lets no newly used key overtake keys that wait longer, whatever their ids", async () => {
  const written: string[][] = [];
  const keys = {
    touchKeys: async (batch: ReadonlyMap<string, number>) => {
      written.push([...batch.keys()]);
      if (written.length === 1) usedAt(activity, 1, "a");
    },
  };
  const activity = new KeyActivity({ keys, log: all.log, flushMs: 1, maxAtOnce: 2 });
  usedAt(activity, 1, "f", "d", "c", "b", "e");
  await until(() => written.length === 3);
  expect(written).toEqual([
    ["b", "c"],
    ["d", "e"],
    ["f", "a"],
  ]);
});

test("gives each key its turn if more keys are used than may wait", async () => {
  const written = new Set<string>();
  const keys = {
    touchKeys: async (batch: ReadonlyMap<string, number>) => {
      for (const id of batch.keys()) written.add(id);
    },
  };
  const activity = new KeyActivity({ keys, log: all.log, flushMs: 60_000 });
  const ids = Array.from({ length: 250_000 }, (_, n) => `key_${n}`);
  const uses = (from: number, to: number) => usedAt(activity, 1, ...ids.slice(from, to));
  const waiting = (of: readonly KeyUse[]) => of.filter(({ isWaiting }) => isWaiting).length;
  const known = uses(0, 60_000);
  expect(waiting(known)).toBe(60_000);
  // A key that waits already takes no second place.
  for (const use of known) activity.used(use, 2);
  await activity.flush();
  expect(waiting(known)).toBe(0);
  expect(waiting(uses(60_000, 160_000))).toBe(100_000);
  expect(waiting(uses(160_000, 160_001))).toBe(0);
  await activity.flush();
  expect(waiting(uses(150_000, 250_000))).toBe(100_000);
  await activity.flush();
  expect(waiting(uses(0, 60_000))).toBe(60_000);
  await activity.flush();
  expect(written.size).toBe(ids.length);
});

test("retries a failed write with the newest time of each key, at shutdown at the latest", async () => {
  const [one, two] = [await all.addKey(), await all.addKey()];
  const [use = unused("")] = usedAt(all.activity, 10, one.id, two.id);
  all.keySwitch.failure = new Error("disk full");
  const gate = Promise.withResolvers<void>();
  all.keySwitch.held = gate.promise;
  const flushing = all.activity.flush();
  await until(() => writes() === 1);
  all.activity.used(use, 20);
  all.keySwitch.held = undefined;
  gate.resolve();
  await flushing;
  expect(all.log.lines.map(({ event }) => event)).toEqual(["key_activity_write_failed"]);
  all.keySwitch.failure = undefined;
  await all.activity.close();
  expect([await lastUsed(one.id), await lastUsed(two.id)]).toEqual([20, 10]);
});

test("writes the latest use of a key that was loaded again meanwhile", async () => {
  const { id } = await all.addKey();
  for (const seconds of [20, 30, 10]) usedAt(all.activity, seconds, id);
  await all.activity.flush();
  expect([writes(), await lastUsed(id)]).toEqual([1, 30]);
});

test("does not count the use of a key as a change that clears caches", async () => {
  const { secret } = await all.addKey();
  await all.authenticator.authenticate(presented({ apiKey: secret }));
  const before = await all.keys.credentialRevision();
  await all.activity.flush();
  expect(await all.keys.credentialRevision()).toBe(before);
});
