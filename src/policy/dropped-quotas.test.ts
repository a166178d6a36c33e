// Tests which quotas are read again from the ledger, because usage was not counted under them.
import { expect, test } from "bun:test";
import { accountFor, keyRecordFor } from "../../tests/support/principal.ts";
import type { Quota } from "../domain/limits/limits.ts";
import { DroppedQuotas } from "./dropped-quotas.ts";
import { limitsOf } from "./limits-of.ts";
import { Tiers } from "./manage/tiers.ts";

test("reads the usage of an organization again when its accounts change, and once in each process", () => {
  const forgotten: string[][] = [];
  const forgetQuotas = (quotas: Iterable<Quota>) => void forgotten.push(Array.from(quotas, ({ id }) => id));
  const dropped = new DroppedQuotas({ forgetQuotas });
  const see = (membersRevision: number) => {
    const organization = {
      ...{ id: "org_1", name: "Group", createdAt: 0, membersRevision, monthlyTokens: 9, monthlySpend: null },
      quotas: [{ unit: "usd", amount: 2, per: "day", window: "calendar" }] as const,
    };
    const account = accountFor({ organizationId: "org_1", organization });
    const tier = new Tiers().find("pro");
    dropped.seen(limitsOf({ keys: [keyRecordFor()], account, environment: "live", tier }));
  };
  const all = ["organization:org_1:live", "organization:org_1:live day calendar"];
  see(4);
  expect(forgotten).toEqual([all]);
  see(4);
  // Cached limits may be older than those that were seen last.
  see(3);
  expect(forgotten).toHaveLength(1);
  see(5);
  expect(forgotten).toEqual([all, all]);
});
