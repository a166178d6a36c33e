// What all processes that share the database must have in common, by name.
import { adding, type Database } from "./database.ts";
import { available } from "./outage.ts";

export class SqlInstallation {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async find(name: string): Promise<string | undefined> {
    const [row]: { value: string }[] = await available(this.#db`SELECT value FROM installation WHERE name = ${name}`);
    return row?.value;
  }

  /** Where there is none yet; gives what is there then. */
  async ensure(name: string, value: string): Promise<string> {
    await available(
      adding(this.#db, (tx) => tx`INSERT INTO installation ${tx({ name, value })} ON CONFLICT (name) DO NOTHING`),
    );
    return (await this.find(name)) ?? value;
  }
}
