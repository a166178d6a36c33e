// The schema: applied once, completely or not at all, by one process. An edited schema is refused, and so is a newer
// one unless it allows this version.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import type { Database } from "./database.ts";
import { migrationsFor } from "./migrations.ts";
import { pendingSteps, requireCurrent, schemaState } from "./schema.ts";

const steps = migrationsFor("sqlite").length;
const packageVersion = (await Bun.file(join(import.meta.dir, "../../../package.json")).json()).version;

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

  test("applies a schema once and keeps the stored data at the next start", async () => {
    await db`INSERT INTO tiers (name, environments) VALUES ('kept', 'live')`;
    const before = await applied();
    expect(before).toHaveLength(steps);
    const again = await opened.openAgain();
    expect([...(await again`SELECT name FROM tiers`)]).toEqual([{ name: "kept" }]);
    expect(await applied()).toEqual(before);
  });

  const addStep = (version: number, worksFrom: number | null) => db`
    INSERT INTO schema_migrations (version, applied_at, checksum, works_from, made_by)
    VALUES (${version}, 0, 'x', ${worksFrom}, '9.8.7')`;

  test("refuses a newer schema without compatibility data, with both versions and a remedy, and keeps it", async () => {
    await addStep(steps + 1, null);
    const before = await applied();
    await expect(opened.openAgain()).rejects.toThrow(
      `The database has schema version ${steps + 1}, made by Headrace 9.8.7, this Headrace ${packageVersion} knows ${steps} and cannot work with that one: start the newer Headrace that wrote it, or restore the backup from before`,
    );
    expect(await applied()).toEqual(before);
    await db`DELETE FROM schema_migrations WHERE version = ${steps + 1}`;
    await opened.openAgain();
  });

  test("works with a newer schema if each of its steps declares this version sufficient", async () => {
    await addStep(steps + 1, steps);
    await addStep(steps + 2, steps - 3);
    const before = await applied();
    const older = await opened.openAgain();
    await requireCurrent(older, databases.dialect);
    expect(await pendingSteps(older, databases.dialect)).toBeUndefined();
    expect(await schemaState(older, databases.dialect)).toEqual({
      ...{ version: steps + 2, known: steps, isCompatible: true, madeBy: "9.8.7", foreignStep: undefined },
    });
    expect(await applied()).toEqual(before);
  });

  test("refuses a newer schema once one step needs a later version, whatever later steps declare", async () => {
    await addStep(steps + 1, steps + 1);
    await addStep(steps + 2, steps);
    await expect(opened.openAgain()).rejects.toThrow("start the newer Headrace");
    await expect(requireCurrent(db, databases.dialect)).rejects.toThrow("use the newer Headrace");
  });

  test("refuses a schema with an unknown step, and names the step", async () => {
    await db`UPDATE schema_migrations SET checksum = 'of another build' WHERE version = 3`;
    await expect(opened.openAgain()).rejects.toThrow(/^Step 3 of the database's schema is not the one/);
  });

  test("adds checksums to a schema from before they existed", async () => {
    const before = await applied();
    for (const column of ["checksum", "works_from", "made_by"])
      await db.unsafe(`ALTER TABLE schema_migrations DROP COLUMN ${column}`);
    await opened.openAgain();
    expect(await applied()).toEqual(before);
  });

  test("leaves nothing of a schema step that fails", async () => {
    const broken = await databases.empty();
    // This table makes one of the last statements of the first step fail.
    await broken.run("CREATE TABLE usage_records (x INTEGER)");
    await expect(broken.open()).rejects.toThrow();
    expect(await broken.tables()).toEqual(["usage_records"]);
    await broken.run("DROP TABLE usage_records");
    await (await broken.open()).close();
  });

  test("applies a schema once if several starts run at once on a new database", async () => {
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
