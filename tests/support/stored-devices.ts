// Device codes as a database has them, in whatever state: the program itself only ever asks for those that can be used.
import type { DeviceCode } from "../../src/domain/people/oauth.ts";
import type { Database } from "../../src/storage/sql/database.ts";
import { type DeviceCodeRow, deviceCodeFromRow } from "../../src/storage/tables/people/oauth-rows.ts";

export async function storedDeviceCode(db: Database, digest: string): Promise<DeviceCode | undefined> {
  const [row]: DeviceCodeRow[] = await db`SELECT * FROM device_codes WHERE digest = ${digest}`;
  return row && deviceCodeFromRow(row);
}
