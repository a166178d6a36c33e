// The sealed content key in the database, as a value that all processes share.
import type { ContentKeyStore } from "../../domain/seal.ts";
import type { Database } from "../sql/database.ts";
import { addInstallation, readInstallation } from "../sql/installation.ts";
import { available, written } from "../sql/outage.ts";

/** Name of the content key in `installation`. */
export const contentKeyName = "content_key";

export class SqlContentKeyStore implements ContentKeyStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  find(): Promise<string | undefined> {
    return available(readInstallation(this.#db, contentKeyName));
  }

  add(sealed: string): Promise<string> {
    return written(this.#db, async (tx) => {
      await addInstallation(tx, contentKeyName, sealed);
      return (await readInstallation(tx, contentKeyName)) ?? sealed;
    });
  }
}
