// The time since which requests without a price are counted. Older sums do not include them.
import type { Database } from "../../storage/sql/database.ts";
import { addInstallation, readInstallation } from "../../storage/sql/installation.ts";
import { available, written } from "../../storage/sql/outage.ts";

const name = "unpriced_counted_from";

/**
 * Returns Unix seconds; 0 if requests without a price were always counted. The first start of a version that counts
 * them stores the time.
 */
export async function unpricedSince(db: Database, nowSeconds: number): Promise<number> {
  const known = await available(readInstallation(db, name));
  if (known !== undefined) return Number(known);
  const [row]: unknown[] = await available(db`SELECT 1 FROM usage_rollups LIMIT 1`);
  await written(db, (tx) => addInstallation(tx, name, String(row === undefined ? 0 : nowSeconds)));
  return Number(await available(readInstallation(db, name)));
}
