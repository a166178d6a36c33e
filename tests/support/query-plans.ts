// How SQLite reads what a store asks it for, told from the store's own queries.
import type { Database } from "../../src/storage/database.ts";

/** The same database, which also puts the steps of each query that it answers into `plans`. */
export function explained(db: Database, plans: Set<string>): Database {
  return new Proxy(db, {
    apply(target, self, [text, ...values]: [TemplateStringsArray, ...unknown[]]) {
      if (!text[0]?.trimStart().startsWith("SELECT")) return Reflect.apply(target, self, [text, ...values]);
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
