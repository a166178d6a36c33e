// The times from which sums count what earlier versions did not count: always, or from the first start that counts it.
import { expect, test } from "bun:test";
import { onEachDatabase } from "../../../tests/support/databases.ts";
import { totalsSince, unpricedSince } from "./counted-since.ts";

onEachDatabase((databases) => {
  test("counts always in a new installation, and from the first start or a later midnight in an upgraded one", async () => {
    const fresh = await databases.open();
    expect([await unpricedSince(fresh.db, 1_000), await unpricedSince(fresh.db, 2_000)]).toEqual([0, 0]);
    expect(await totalsSince(fresh.db, 90_000)).toBe(0);
    await fresh.close();
    const upgraded = await databases.open();
    await upgraded.db`
      INSERT INTO usage_rollups (account_id, environment, span, start, key_id, app_id, model, requests, prompt_tokens,
        completion_tokens, nano_usd, errors)
      VALUES ('acct_1', 'live', 'day', 0, 'key_1', '', 'm', 1, 1, 1, 0, 0)`;
    expect([await unpricedSince(upgraded.db, 1_000), await unpricedSince(upgraded.db, 2_000)]).toEqual([1_000, 1_000]);
    // The second midnight, because replicas of the previous version may still write.
    expect([await totalsSince(upgraded.db, 90_000), await totalsSince(upgraded.db, 200_000)]).toEqual([
      259_200, 259_200,
    ]);
    await upgraded.close();
  });
});
