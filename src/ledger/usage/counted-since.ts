// The times since which sums count something that earlier versions did not count.
import type { Database } from "../../storage/sql/database.ts";
import { addInstallation, readInstallation } from "../../storage/sql/installation.ts";
import { available, written } from "../../storage/sql/outage.ts";

const daySeconds = 86_400;

/**
 * Returns the time since which requests without a price are counted, in Unix seconds; 0 if they were always counted.
 * The first start of a version that counts them stores the time.
 */
export function unpricedSince(db: Database, nowSeconds: number): Promise<number> {
  return countedSince(db, "unpriced_counted_from", nowSeconds);
}

/**
 * Returns the time since which `usage_totals` is complete, in Unix seconds: 0, or the second midnight (UTC) after the
 * first start of a version that writes it. Until then, replicas of the previous version may still write usage.
 */
export function totalsSince(db: Database, nowSeconds: number): Promise<number> {
  return countedSince(db, "totals_counted_from", nowSeconds - (nowSeconds % daySeconds) + 2 * daySeconds);
}

async function countedSince(db: Database, name: string, from: number): Promise<number> {
  const known = await available(readInstallation(db, name));
  if (known !== undefined) return Number(known);
  const [row]: unknown[] = await available(db`SELECT 1 FROM usage_rollups LIMIT 1`);
  await written(db, (tx) => addInstallation(tx, name, String(row === undefined ? 0 : from)));
  return Number(await available(readInstallation(db, name)));
}
