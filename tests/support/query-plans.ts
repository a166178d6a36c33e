// How a database reads what a store asks it for, told from the store's own queries.
import type { Database } from "../../src/storage/sql/database.ts";

/** The same database, SQLite, which also puts the steps of each query that it answers into `plans`. */
export function explained(db: Database, plans: Set<string>): Database {
  return new Proxy(db, {
    apply(target, self, [text, ...values]: [TemplateStringsArray, ...unknown[]]) {
      if (!isRead(text)) return Reflect.apply(target, self, [text, ...values]);
      const strings = [`EXPLAIN QUERY PLAN ${text[0]}`, ...text.slice(1)];
      Object.defineProperty(strings, "raw", { value: strings });
      return (async () => {
        const steps: { detail: string }[] = await Reflect.apply(target, self, [strings, ...values]);
        for (const { detail } of steps) plans.add(detail);
        return Reflect.apply(target, self, [text, ...values]);
      })();
    },
  });
}

/** A list of values is no statement. */
function isRead(text: TemplateStringsArray): boolean {
  return Object.hasOwn(text, "raw") && text[0]?.trimStart().startsWith("SELECT") === true;
}

interface PlanNode {
  "Node Type": string;
  "Relation Name"?: string;
  "Index Name"?: string;
  Plans?: PlanNode[];
}

/** The same for PostgreSQL: which table is read by which index, or all of it. */
export function explainedByPostgres(db: Database, plans: Set<string>): Database {
  const note = (node: PlanNode) => {
    const { "Relation Name": table, "Index Name": index, Plans: below = [] } = node;
    if (index !== undefined) plans.add(index);
    else if (table !== undefined && !node["Node Type"].startsWith("Bitmap")) plans.add(`all of ${table}`);
    for (const one of below) note(one);
  };
  return new Proxy(db, {
    apply(target, self, [text, ...values]: [TemplateStringsArray, ...unknown[]]) {
      if (!isRead(text)) return Reflect.apply(target, self, [text, ...values]);
      const strings = [`EXPLAIN (FORMAT JSON) ${text[0]}`, ...text.slice(1)];
      Object.defineProperty(strings, "raw", { value: strings });
      return (async () => {
        const [row]: { "QUERY PLAN": [{ Plan: PlanNode }] }[] = await Reflect.apply(target, self, [strings, ...values]);
        if (row) note(row["QUERY PLAN"][0].Plan);
        return Reflect.apply(target, self, [text, ...values]);
      })();
    },
  });
}
