// Device codes as a database has them, in whatever state: the program itself only ever asks for those that can be used.
import type { DeviceCode } from "../../src/domain/people/oauth.ts";
import type { Database } from "../../src/storage/sql/database.ts";
import { deviceCodes } from "../../src/storage/tables/people/oauth-rows.ts";

export function storedDeviceCode(db: Database, digest: string): Promise<DeviceCode | undefined> {
  return deviceCodes.first(db`SELECT * FROM device_codes WHERE digest = ${digest}`);
}
