// Brings a database's schema up to date, each step once; refuses one that a newer Headrace, or another build, has made.

import { createHash } from "node:crypto";
import type { SQL } from "bun";
import { wallMs } from "../../base/clock.ts";
import { StartError } from "../../base/errors.ts";
import { type Dialect, migrationsFor } from "./migrations.ts";

/** The newest version of the schema. */
export const knownSteps = migrationsFor("sqlite").length;

interface AppliedStep {
  version: number | string;
  checksum: string | null;
}

/**
 * Is called in a transaction in which nobody else does the same: of several starts at once one migrates and the others see
 * it. `last`: the step after which it stops, as an older Headrace would.
 */
export async function bringUpToDate(tx: SQL, dialect: Dialect, last = knownSteps): Promise<void> {
  const applied = await appliedSteps(tx, dialect);
  requireKnown(applied);
  const steps = migrationsFor(dialect).slice(0, last);
  for (const { version, checksum } of applied) {
    // A step from before checksums were kept has none.
    if (checksum !== null) continue;
    await tx`UPDATE schema_migrations SET checksum = ${checksumOf(Number(version))} WHERE version = ${version}`;
  }
  const nowSeconds = Math.floor(wallMs() / 1000);
  for (let version = applied.length + 1; version <= steps.length; version++) {
    for (const statement of steps[version - 1] ?? []) await tx.unsafe(statement);
    await tx`
      INSERT INTO schema_migrations (version, applied_at, checksum)
      VALUES (${version}, ${nowSeconds}, ${checksumOf(version)})`;
  }
}

/** Steps that a database has, and how many this Headrace knows. */
export interface PendingSteps {
  from: number;
  to: number;
}

/**
 * Tells what `bringUpToDate` would do, without doing it; undefined where that is nothing, or there are no tables yet. Throws a
 * StartError for a database that this Headrace does not know.
 */
export async function pendingSteps(db: SQL, dialect: Dialect): Promise<PendingSteps | undefined> {
  const columns = await columnsOfSteps(db, dialect);
  if (columns.length === 0) return undefined;
  const applied: AppliedStep[] =
    columns.length === 2
      ? await db`SELECT version, NULL AS checksum FROM schema_migrations ORDER BY version`
      : await db`SELECT version, checksum FROM schema_migrations ORDER BY version`;
  requireKnown(applied);
  const from = Number(applied.at(-1)?.version ?? 0);
  return from > 0 && from < knownSteps ? { from, to: knownSteps } : undefined;
}

/** A command beside a server asks for this alone: to bring the schema up to date would take the server's own from under it. */
export async function requireCurrent(db: SQL, dialect: Dialect): Promise<void> {
  const columns = await columnsOfSteps(db, dialect);
  const [row] = columns.length === 0 ? [] : await db`SELECT max(version) AS version FROM schema_migrations`;
  const version = Number(row?.version ?? 0);
  const known = knownSteps;
  if (version === known) return;
  throw new StartError(
    version > known
      ? `The database has schema version ${version}, this Headrace knows ${known}: use the newer Headrace that wrote it.`
      : `The database has schema version ${version}, this Headrace needs ${known}: start the server again with this Headrace, which brings it up to date.`,
  );
}

export interface SchemaState {
  /** 0: nothing was ever made. */
  version: number;
  /** The version that this Headrace knows. */
  known: number;
  /** A step that is not the one that this Headrace knows. */
  foreignStep: number | undefined;
}

/** Changes nothing, and refuses nothing. */
export async function schemaState(db: SQL, dialect: Dialect): Promise<SchemaState> {
  const columns = await columnsOfSteps(db, dialect);
  const known = migrationsFor(dialect).length;
  if (columns.length === 0) return { version: 0, known, foreignStep: undefined };
  const checksum = columns.length > 2 ? db`checksum` : db`NULL AS checksum`;
  const applied: AppliedStep[] = await db`SELECT version, ${checksum} FROM schema_migrations ORDER BY version`;
  const foreign = otherStep(applied.filter(({ version }) => Number(version) <= known));
  return {
    version: Number(applied.at(-1)?.version ?? 0),
    known,
    foreignStep: foreign && Number(foreign.version),
  };
}

/** None where nothing was ever made. */
async function columnsOfSteps(db: SQL, dialect: Dialect): Promise<unknown[]> {
  if (dialect === "sqlite") return db`SELECT name FROM pragma_table_info('schema_migrations')`;
  return db`SELECT attname FROM pg_attribute WHERE attrelid = to_regclass('schema_migrations') AND attnum > 0 AND NOT attisdropped`;
}

/** Whoever may use the tables, and not make any, can start where they are up to date. */
async function appliedSteps(tx: SQL, dialect: Dialect): Promise<AppliedStep[]> {
  const columns = await columnsOfSteps(tx, dialect);
  if (columns.length === 0) {
    await tx`CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, applied_at BIGINT NOT NULL, checksum TEXT)`;
  }
  if (columns.length === 2) await tx`ALTER TABLE schema_migrations ADD COLUMN checksum TEXT`;
  return tx`SELECT version, checksum FROM schema_migrations ORDER BY version`;
}

function requireKnown(applied: readonly AppliedStep[]): void {
  const known = knownSteps;
  const newest = Number(applied.at(-1)?.version ?? 0);
  if (newest > known) {
    throw new StartError(
      `The database has schema version ${newest}, this Headrace knows ${known}: start the newer Headrace that wrote it.`,
    );
  }
  const other = otherStep(applied);
  if (!other) return;
  throw new StartError(
    `Step ${other.version} of the database's schema is not the one that this Headrace knows: another build has made it, such as ` +
      "one between two releases. Start the Headrace that made it, or restore a backup from before.",
  );
}

function otherStep(applied: readonly AppliedStep[]): AppliedStep | undefined {
  return applied.find(({ version, checksum }) => checksum !== null && checksum !== checksumOf(Number(version)));
}

/** Checksum of a step as it is written down, the same for both databases; how its lines are broken is no part of it. */
function checksumOf(version: number): string {
  const statements = migrationsFor("sqlite")[version - 1] ?? [];
  return createHash("sha256")
    .update(statements.map((statement) => statement.replace(/\s+/g, " ")).join(";\n"))
    .digest("hex");
}
