// The bound on the memory of keys with very long lists.
import { expect, test } from "bun:test";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { accountFor, keyRecordFor, tierFor } from "../../../tests/support/principal.ts";
import { limitsOf } from "../limits-of.ts";
import { CredentialCache } from "./credential-cache.ts";

const tier = tierFor({ requestsPerMinute: null, tokensPerMinute: null });

test("drops keys with long lists beyond a bound, and keeps ordinary keys", async () => {
  const reads: string[] = [];
  const models = (id: string) =>
    id === "key_ordinary" ? ["m"] : Array.from({ length: 100 }, (_, i) => `${id}${i}`.padEnd(2_000, "m"));
  const cache = new CredentialCache({
    keys: {
      async findChainById(id) {
        reads.push(id);
        return { keys: [keyRecordFor({ id, limitId: id, models: models(id) })], account: accountFor() };
      },
      findChainByDigest: async () => undefined,
      credentialRevision: async () => 1,
      endDue: async () => {},
    },
    clock: manualClock(),
    log: { info() {}, warn() {}, error() {} },
    limitsOf: ({ keys, account }) => limitsOf({ keys, account, environment: keys[0].environment, tier }),
  });
  await cache.byId("key_ordinary");
  for (let n = 0; n < 400; n++) await cache.byId(`key_${n}`);
  // Each long chain has some 200,000 characters, and 32 Mi may stay.
  expect(cache.figures.cached).toBeLessThan(200);
  await cache.byId("key_399");
  await cache.byId("key_ordinary");
  expect(reads.filter((id) => id === "key_399" || id === "key_ordinary")).toEqual(["key_ordinary", "key_399"]);
  await cache.byId("key_0");
  expect(reads.filter((id) => id === "key_0")).toHaveLength(2);
});
