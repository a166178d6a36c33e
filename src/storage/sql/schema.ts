// Brings a database's schema up to date, each step once; refuses one that another build made, or a newer Headrace beside which
// this one cannot work.

import { createHash } from "node:crypto";
import type { SQL } from "bun";
import packageJson from "../../../package.json" with { type: "json" };
import { wallMs } from "../../base/clock.ts";
import { StartError } from "../../base/errors.ts";
import { type Dialect, migrationsFor, worksFrom } from "./migrations.ts";

/** The newest version of the schema. */
export const knownSteps = migrationsFor("sqlite").length;

interface AppliedStep {
  version: number | string;
  checksum: string | null;
  /** Steps that a Headrace has to know at least to work once this one is applied; null: all. */
  works_from: number | string | null;
  /** Version of the Headrace that applied it; null: one from before that was kept. */
  made_by: string | null;
}

/** What was added to the table of steps after its first version, with its type; null in rows of before. */
const laterColumns = { checksum: "TEXT", works_from: "INTEGER", made_by: "TEXT" } as const;

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
      INSERT INTO schema_migrations (version, applied_at, checksum, works_from, made_by)
      VALUES (${version}, ${nowSeconds}, ${checksumOf(version)}, ${worksFrom}, ${packageJson.version})`;
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
  const applied = await readSteps(db, dialect);
  requireKnown(applied);
  const from = Number(applied.at(-1)?.version ?? 0);
  return from > 0 && from < knownSteps ? { from, to: knownSteps } : undefined;
}

/** A command beside a server asks for this alone: to bring the schema up to date would take the server's own from under it. */
export async function requireCurrent(db: SQL, dialect: Dialect): Promise<void> {
  const applied = await readSteps(db, dialect);
  requireReach(applied, "use");
  const version = newestOf(applied);
  if (version >= knownSteps) return;
  throw new StartError(
    `The database has schema version ${version}, this Headrace needs ${knownSteps}: start the server again with this Headrace, which brings it up to date.`,
  );
}

export interface SchemaState {
  /** 0: nothing was ever made. */
  version: number;
  /** The version that this Headrace knows. */
  known: number;
  /** Whether this Headrace can work with a schema that is newer than the one that it knows. */
  isWithinReach: boolean;
  /** Version of the Headrace that made the newest step; undefined where that was not kept. */
  madeBy: string | undefined;
  /** A step that is not the one that this Headrace knows. */
  foreignStep: number | undefined;
}

/** Changes nothing, and refuses nothing. */
export async function schemaState(db: SQL, dialect: Dialect): Promise<SchemaState> {
  const applied = await readSteps(db, dialect);
  const foreign = otherStep(applied);
  return {
    version: newestOf(applied),
    known: knownSteps,
    isWithinReach: isWithinReach(applied),
    madeBy: applied.at(-1)?.made_by ?? undefined,
    foreignStep: foreign && Number(foreign.version),
  };
}

/** None where nothing was ever made. */
async function columnsOfSteps(db: SQL, dialect: Dialect): Promise<ReadonlySet<string>> {
  const columns: { name: string }[] =
    dialect === "sqlite"
      ? await db`SELECT name FROM pragma_table_info('schema_migrations')`
      : await db`
          SELECT attname AS name FROM pg_attribute
          WHERE attrelid = to_regclass('schema_migrations') AND attnum > 0 AND NOT attisdropped`;
  return new Set(columns.map(({ name }) => name));
}

/** Steps that were applied, in their order; none where nothing was ever made. */
async function readSteps(db: SQL, dialect: Dialect): Promise<AppliedStep[]> {
  const columns = await columnsOfSteps(db, dialect);
  if (columns.size === 0) return [];
  const later = Object.keys(laterColumns).map((name) => (columns.has(name) ? name : `NULL AS ${name}`));
  return db.unsafe(`SELECT version, ${later.join(", ")} FROM schema_migrations ORDER BY version`);
}

/** Whoever may use the tables, and not make any, can start where they are up to date. */
async function appliedSteps(tx: SQL, dialect: Dialect): Promise<AppliedStep[]> {
  const columns = await columnsOfSteps(tx, dialect);
  if (columns.size === 0)
    await tx`CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, applied_at BIGINT NOT NULL)`;
  for (const [name, type] of Object.entries(laterColumns)) {
    if (!columns.has(name)) await tx.unsafe(`ALTER TABLE schema_migrations ADD COLUMN ${name} ${type}`);
  }
  return readSteps(tx, dialect);
}

function newestOf(applied: readonly AppliedStep[]): number {
  return Number(applied.at(-1)?.version ?? 0);
}

/** Whether each step that is not known here says that whoever knows no more than this Headrace can work all the same. */
function isWithinReach(applied: readonly AppliedStep[]): boolean {
  return applied.every(
    ({ version, works_from }) =>
      Number(version) <= knownSteps || (works_from !== null && Number(works_from) <= knownSteps),
  );
}

function requireReach(applied: readonly AppliedStep[], verb: "start" | "use"): void {
  if (isWithinReach(applied)) return;
  const madeBy = applied.at(-1)?.made_by;
  const maker = madeBy ? `, made by Headrace ${madeBy}` : "";
  throw new StartError(
    `The database has schema version ${newestOf(applied)}${maker}, this Headrace ${packageJson.version} knows ${knownSteps} and cannot work with that one: ${verb} the newer Headrace that wrote it, or restore the backup from before (docs/upgrading.md).`,
  );
}

function requireKnown(applied: readonly AppliedStep[]): void {
  requireReach(applied, "start");
  const other = otherStep(applied);
  if (!other) return;
  throw new StartError(
    `Step ${other.version} of the database's schema is not the one that this Headrace knows: another build has made it, such as ` +
      "one between two releases. Start the Headrace that made it, or restore a backup from before.",
  );
}

/** Among those that are known here. */
function otherStep(applied: readonly AppliedStep[]): AppliedStep | undefined {
  return applied.find(
    ({ version, checksum }) =>
      Number(version) <= knownSteps && checksum !== null && checksum !== checksumOf(Number(version)),
  );
}

/** Checksum of a step as it is written down, the same for both databases; how its lines are broken is no part of it. */
function checksumOf(version: number): string {
  const statements = migrationsFor("sqlite")[version - 1] ?? [];
  return createHash("sha256")
    .update(statements.map((statement) => statement.replace(/\s+/g, " ")).join(";\n"))
    .digest("hex");
}
