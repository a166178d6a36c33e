// Tests that little of a key stays in memory between its requests, and that each request gets an equal principal.

import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { accountFor, keyRecordFor, tierFor } from "../../../tests/support/principal.ts";
import type { KeyChain, Principal } from "../../domain/principal.ts";
import { limitsOf } from "../limits-of.ts";
import { CachedChains, type Chain } from "./cached-chain.ts";

const account = accountFor();
const tier = tierFor({ requestsPerMinute: 60, tokensPerMinute: 6_000, monthlyTokens: 1_000_000 });
const limits = ({ keys, account }: Chain) => limitsOf({ keys, account, environment: keys[0].environment, tier });
const own = { rateLimit: 10, rateLimitWindow: 60, monthlyTokens: 1_000, monthlySpend: 5 } as const;
/** Returns an id as one flat string, as a database does. */
const idOf = () => Buffer.from(`key_${Bun.randomUUIDv7()}`).toString("latin1");
const chainOf = (changes = {}): KeyChain => ({ keys: [keyRecordFor({ id: idOf(), ...own, ...changes })], account });

/** Returns everything that a principal contains, including the lists of its limits. */
const contentOf = ({ limits, scopes, keys, ...others }: Principal) => {
  const { requests, tokens, quotas, windows, groups } = limits;
  const members = keys.map(({ id, limitId, scopes, expiresAt, tags }) => ({ id, limitId, scopes, expiresAt, tags }));
  return structuredClone({ ...others, scopes: [...scopes], keys: members, requests, tokens, quotas, windows, groups });
};

/** Uses so many other keys that no principal of an earlier request stays in memory. */
function useOthers(chains: CachedChains): void {
  for (let n = 0; n < 1_100; n++) expect(chains.of(chainOf()).principal.keys).toHaveLength(1);
}

test("returns the same principal while its key is in use, and an equal one later", () => {
  const maker = keyRecordFor({ id: "key_maker", limitId: "key_former", tags: ["made"], expiresAt: 9_000 });
  const chains = new CachedChains(limits);
  const cases = [
    chainOf(),
    chainOf({ limitId: "key_rotated", tags: ["a"], models: ["small-*"], allowedIps: ["10.0.0.0/8"] }),
    chainOf({ quotas: [{ unit: "tokens", amount: 5, per: "day", window: "calendar" }] }),
    { keys: [...chainOf({ parentId: "key_maker", scopes: ["chat:write"] }).keys, maker], account },
  ] as KeyChain[];
  for (const one of cases) {
    const chain = chains.of(one);
    const { principal } = chain;
    expect(chain.principal).toBe(principal);
    const before = contentOf(principal);
    expect(before.keys.map(({ id }) => id)).toEqual(one.keys.map(({ id }) => id));
    expect(before.quotas.map(({ ownerId }) => ownerId)).toEqual([
      account.id,
      ...one.keys.map(({ limitId }) => limitId),
    ]);
    useOthers(chains);
    expect(chain.principal).not.toBe(principal);
    expect(contentOf(chain.principal)).toEqual(before);
  }
});

test("keeps a store's lasting cache entry in a key's limits when the limits are rebuilt", () => {
  const chains = new CachedChains(limits);
  const [lasting, passing] = [chains.of(chainOf()), chains.of(chainOf())];
  const place = { lasts: true };
  lasting.principal.limits.counted = place;
  passing.principal.limits.counted = { lasts: false };
  for (let time = 0; time < 2; time++) {
    useOthers(chains);
    expect(lasting.principal.limits.counted).toBe(place);
    expect(passing.principal.limits.counted).toBeUndefined();
  }
});

test("shares no distinguishing data between keys that differ in more than their ids", () => {
  const chains = new CachedChains(limits);
  const changes = [{}, { expiresAt: 5 }, { revokedAt: 6 }, { revoked: true }, { scopes: [] }, { rateLimit: 3 }];
  const made = changes.map((change) => chains.of(chainOf(change)));
  useOthers(chains);
  const seen = made.map(({ expiresAt, revokedAt, principal }) => ({
    ...{ expiresAt, revokedAt, scopes: principal.scopes.size },
    limit: principal.limits.requests.at(-1)?.limit,
  }));
  expect(seen.map(({ expiresAt }) => expiresAt)).toEqual([1 / 0, 5, 1 / 0, 1 / 0, 1 / 0, 1 / 0]);
  expect(seen.map(({ revokedAt }) => revokedAt)).toEqual([1 / 0, 1 / 0, 6, -1 / 0, 1 / 0, 1 / 0]);
  expect(seen.map(({ scopes }) => scopes > 0)).toEqual([true, true, true, true, false, true]);
  expect(seen.map(({ limit }) => limit)).toEqual([10, 10, 10, 10, 10, 3]);
});

test("makes a key depend on itself, its makers, their users and apps, and its account only", () => {
  const maker = keyRecordFor({ id: "key_maker", personId: "usr_maker", appId: "app_maker" });
  const [key] = chainOf({ id: "key_own", personId: "usr_own" }).keys;
  const chain = new CachedChains(limits).of({ keys: [key, maker], account });
  for (const id of ["key_own", "usr_own", "key_maker", "usr_maker", "app_maker", account.id]) {
    expect([id, chain.dependsOn(new Set(["key_x", id]))]).toEqual([id, true]);
  }
  expect(chain.dependsOn(new Set(["key_x", "usr_x", "acct_x"]))).toBe(false);
});

test("keeps only one object and an id for a key between its requests", () => {
  const chains = new CachedChains(limits);
  useOthers(chains);
  const count = () => {
    Bun.gc(true);
    const { Object: objects = 0, Array: arrays = 0, string: strings = 0 } = heapStats().objectTypeCounts;
    return { objects: objects + arrays, strings };
  };
  const before = count();
  const kept = Array.from({ length: 5_000 }, () => {
    const chain = chains.of(chainOf());
    expect(chain.principal.limits.quotas).toHaveLength(2);
    return chain;
  });
  useOthers(chains);
  const after = count();
  expect(kept).toHaveLength(5_000);
  expect((after.objects - before.objects) / 5_000).toBeLessThan(1.2);
  expect((after.strings - before.strings) / 5_000).toBeLessThan(1.2);
});
