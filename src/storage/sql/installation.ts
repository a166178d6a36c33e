// Values that all processes of the database share, as texts by name in the table `installation`.
import type { Database } from "./database.ts";

export async function readInstallation(db: Database, name: string): Promise<string | undefined> {
  const [row]: { value: string }[] = await db`SELECT value FROM installation WHERE name = ${name}`;
  return row?.value;
}

/** Stores a value, and replaces an existing one. */
export async function putInstallation(tx: Database, name: string, value: string): Promise<void> {
  await tx`
    INSERT INTO installation ${tx({ name, value })} ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
}

/** Stores a value unless the name has one already. */
export async function addInstallation(tx: Database, name: string, value: string): Promise<void> {
  await tx`INSERT INTO installation ${tx({ name, value })} ON CONFLICT (name) DO NOTHING`;
}
