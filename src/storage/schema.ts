// Brings a database's schema up to date, each step once; refuses one that a newer Headrace, or another build, has made.
import { createHash } from "node:crypto";
import type { SQL } from "bun";
import { StartError } from "../domain/errors.ts";
import { type Dialect, migrationsFor } from "./migrations.ts";

interface AppliedStep {
  version: number | string;
  checksum: string | null;
}

/**
 * In a transaction from the first look on, in which nobody else does the same: of several starts at once one migrates and
 * the others see it.
 */
export async function bringUpToDate(tx: SQL, dialect: Dialect): Promise<void> {
  const applied = await appliedSteps(tx, dialect);
  requireKnown(applied);
  const steps = migrationsFor(dialect);
  for (const { version, checksum } of applied) {
    // From before checksums were kept.
    if (checksum !== null) continue;
    await tx`UPDATE schema_migrations SET checksum = ${checksumOf(Number(version))} WHERE version = ${version}`;
  }
  const nowSeconds = Math.floor(Date.now() / 1000);
  for (let version = applied.length + 1; version <= steps.length; version++) {
    for (const statement of steps[version - 1] ?? []) await tx.unsafe(statement);
    await tx`
      INSERT INTO schema_migrations (version, applied_at, checksum)
      VALUES (${version}, ${nowSeconds}, ${checksumOf(version)})`;
  }
}

/** Whoever may use the tables, and not make any, can start where they are up to date. */
async function appliedSteps(tx: SQL, dialect: Dialect): Promise<AppliedStep[]> {
  const columns: unknown[] =
    dialect === "sqlite"
      ? await tx`SELECT name FROM pragma_table_info('schema_migrations')`
      : await tx`SELECT attname AS name FROM pg_attribute WHERE attrelid = to_regclass('schema_migrations') AND attnum > 0`;
  if (columns.length === 0) {
    await tx`CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, applied_at BIGINT NOT NULL, checksum TEXT)`;
  }
  if (columns.length === 2) await tx`ALTER TABLE schema_migrations ADD COLUMN checksum TEXT`;
  return tx`SELECT version, checksum FROM schema_migrations ORDER BY version`;
}

function requireKnown(applied: readonly AppliedStep[]): void {
  const known = migrationsFor("sqlite").length;
  const newest = Number(applied.at(-1)?.version ?? 0);
  if (newest > known) {
    throw new StartError(
      `The database has schema version ${newest}, this Headrace knows ${known}: start the newer Headrace that wrote it.`,
    );
  }
  const other = applied.find(({ version, checksum }) => checksum !== null && checksum !== checksumOf(Number(version)));
  if (!other) return;
  throw new StartError(
    `Step ${other.version} of the database's schema is not the one that this Headrace knows: another build has made it, such as ` +
      "one between two releases. Start the Headrace that made it, or restore a backup from before.",
  );
}

/** Of a step as it is written down, the same for both databases; how its lines are broken is no part of it. */
function checksumOf(version: number): string {
  const statements = migrationsFor("sqlite")[version - 1] ?? [];
  return createHash("sha256")
    .update(statements.map((statement) => statement.replace(/\s+/g, " ")).join(";\n"))
    .digest("hex");
}
