// Stores the external names and managers of declared objects in the database.
import type { Acting } from "../../../domain/audit.ts";
import type { DeclaredMark, DeclaredMarks } from "../../../domain/declared.ts";
import type { Database } from "../../sql/database.ts";
import { available } from "../../sql/outage.ts";
import { integer, table, text } from "../../sql/table.ts";
import { whileActive } from "../credential-change.ts";

const marks = table<DeclaredMark>({
  kind: text,
  name: text,
  targetId: text,
  managedBy: text,
  changedAt: integer,
});

export class SqlDeclaredMarks implements DeclaredMarks {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  list(): Promise<DeclaredMark[]> {
    return available(marks.all(this.#db`SELECT * FROM declared_objects ORDER BY kind, name`));
  }

  put(mark: DeclaredMark, before: DeclaredMark | undefined, by: Acting): Promise<boolean> {
    return whileActive(this.#db, by, async (tx) => {
      const { kind, name } = mark;
      const found = await marks.first(tx`SELECT * FROM declared_objects WHERE kind = ${kind} AND name = ${name}`);
      if (!Bun.deepEquals(found, before)) return false;
      if (before === undefined) await tx`INSERT INTO declared_objects ${tx(marks.row(mark))}`;
      else {
        const row = marks.part(mark, "targetId", "managedBy", "changedAt");
        await tx`UPDATE declared_objects SET ${tx(row)} WHERE kind = ${kind} AND name = ${name}`;
      }
      return true;
    });
  }

  async remove({ kind, name, targetId }: DeclaredMark, by: Acting): Promise<void> {
    await whileActive(this.#db, by, async (tx) => {
      await tx`DELETE FROM declared_objects WHERE kind = ${kind} AND name = ${name} AND target_id = ${targetId}`;
    });
  }
}
