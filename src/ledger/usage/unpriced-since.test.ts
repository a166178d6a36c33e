// The time from which requests without a price are counted: the first start that counts them, if there was usage
// before.
import { expect, test } from "bun:test";
import { onEachDatabase } from "../../../tests/support/databases.ts";
import { unpricedSince } from "./unpriced-since.ts";

onEachDatabase((databases) => {
  test("counts unpriced requests always in a new installation, and from the first start in an upgraded one", async () => {
    const fresh = await databases.open();
    expect([await unpricedSince(fresh.db, 1_000), await unpricedSince(fresh.db, 2_000)]).toEqual([0, 0]);
    await fresh.close();
    const upgraded = await databases.open();
    await upgraded.db`
      INSERT INTO usage_rollups (account_id, environment, span, start, key_id, app_id, model, requests, prompt_tokens,
        completion_tokens, nano_usd, errors)
      VALUES ('acct_1', 'live', 'day', 0, 'key_1', '', 'm', 1, 1, 1, 0, 0)`;
    expect([await unpricedSince(upgraded.db, 1_000), await unpricedSince(upgraded.db, 2_000)]).toEqual([1_000, 1_000]);
    await upgraded.close();
  });
});
