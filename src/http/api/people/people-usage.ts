// Adds the usage of people to pages of people and of members.
import { z } from "zod";
import type { Clock } from "../../../base/clock.ts";
import type { Principal } from "../../../domain/principal.ts";
import type { PeopleUsage, PersonUsage } from "../../../domain/usage/people-usage.ts";
import type { Ledger } from "../../../domain/usage/usage.ts";
import { bucketStart } from "../../../domain/usage/usage-bucket.ts";
import { type PersonUsageWire, personUsageToWire } from "../../../wire/people/people.ts";
import type { Exchange } from "../../exchange/route.ts";
import type { ListPage } from "../list.ts";
import { listInTurn } from "../list-turns.ts";
import { writtenSoon } from "../usage/written-soon.ts";

export interface PeopleUsageDeps {
  clock: Clock;
  peopleUsage: PeopleUsage;
  /** The ledger whose records of all processes are flushed before usage is read. */
  summedLedger: Pick<Ledger, "flush">;
}

export const includeUsage = {
  include: z.literal("usage").optional().meta({ description: "`usage`, which adds `usage` to each entry" }),
};

interface Asked {
  deps: PeopleUsageDeps;
  exchange: Exchange;
  principal: Principal;
  query: { include?: "usage" | undefined };
}

/** People of one query, few because SQLite blocks the thread that serves requests. */
const atOnce = 5;

/**
 * Returns the page, with the usage of each entry if the request includes it. Only usage in the account counts; null
 * counts all accounts. `personOf` returns the id of an entry's person.
 */
export async function withUsage<Item extends { usage?: PersonUsageWire | undefined }>(
  { deps, exchange, principal, query }: Asked,
  page: ListPage<Item>,
  accountId: string | null,
  personOf: (item: Item) => string,
): Promise<ListPage<Item>> {
  if (query.include === undefined) return page;
  await writtenSoon(deps.summedLedger);
  const since = bucketStart("month", deps.clock.nowSeconds());
  const of = { accountId, environment: principal.environment, since };
  const used = new Map<string, PersonUsage>();
  for (let start = 0; start < page.data.length; start += atOnce) {
    const ids = page.data.slice(start, start + atOnce).map(personOf);
    for (const [id, usage] of await listInTurn(exchange, principal, () => deps.peopleUsage.of(ids, of))) {
      used.set(id, usage);
    }
  }
  const data = page.data.map((item) => ({ ...item, usage: personUsageToWire(used.get(personOf(item))) }));
  return { ...page, data };
}
