// The schema: applied once, forward alone, whole or not at all, by one process; what was edited or is newer is refused.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import type { Database } from "./database.ts";
import { migrationsFor } from "./migrations.ts";

const steps = migrationsFor("sqlite").length;

onEachDatabase((databases) => {
  let opened: TestDatabase;
  let db: Database;

  beforeEach(async () => {
    opened = await databases.openOwn();
    ({ db } = opened);
  });

  afterEach(() => opened.close());

  const applied = async (): Promise<unknown[]> => [
    ...(await db`SELECT version, checksum FROM schema_migrations ORDER BY version`),
  ];

  test("a schema is applied once: what was stored is there after another start", async () => {
    await db`INSERT INTO tiers (name, environments) VALUES ('kept', 'live')`;
    const before = await applied();
    expect(before).toHaveLength(steps);
    const again = await opened.openAgain();
    expect([...(await again`SELECT name FROM tiers`)]).toEqual([{ name: "kept" }]);
    expect(await applied()).toEqual(before);
  });

  test("the schema of a newer Headrace is refused with the way out, and left alone", async () => {
    await db`INSERT INTO schema_migrations (version, applied_at) VALUES (${steps + 1}, 0)`;
    await expect(opened.openAgain()).rejects.toThrow(/start the newer Headrace/);
    await db`DELETE FROM schema_migrations WHERE version = ${steps + 1}`;
    await opened.openAgain();
  });

  test("a schema with a step that is not the one known here is refused, and the step is named", async () => {
    await db`UPDATE schema_migrations SET checksum = 'of another build' WHERE version = 3`;
    await expect(opened.openAgain()).rejects.toThrow(/^Step 3 of the database's schema is not the one/);
  });

  test("a schema from before checksums were kept gets them, and goes on", async () => {
    const before = await applied();
    await db`ALTER TABLE schema_migrations DROP COLUMN checksum`;
    await opened.openAgain();
    expect(await applied()).toEqual(before);
  });

  test("a schema is not half applied: a step that fails leaves nothing of itself", async () => {
    const broken = await databases.empty();
    // Stands in the way of the last statements of the first step.
    await broken.run("CREATE TABLE usage_records (x INTEGER)");
    await expect(broken.open()).rejects.toThrow();
    expect(await broken.tables()).toEqual(["usage_records"]);
    await broken.run("DROP TABLE usage_records");
    await (await broken.open()).close();
  });

  test("a schema is applied once by several starts at once on a new database, and all of them succeed", async () => {
    const fresh = await databases.empty();
    const script = `const db = await ${fresh.openingCode}; await db.close();`;
    const starts = Array.from({ length: 6 }, () => Bun.spawn([process.execPath, "-e", script], { stderr: "pipe" }));
    const errors = await Promise.all(starts.map((start) => new Response(start.stderr).text()));
    expect(errors.map((text) => /error: .*/.exec(text)?.[0] ?? text)).toEqual(errors.map(() => ""));
    const after = await fresh.open();
    const [row] = await after`SELECT count(*) AS n FROM schema_migrations`;
    expect(Number(row.n)).toBe(steps);
    await after.close();
  });
});
