// Applies migration steps, each once. Refuses a schema of another build, or of a newer Headrace with which this one
// cannot work.

import { createHash } from "node:crypto";
import type { SQL } from "bun";
import packageJson from "../../../package.json" with { type: "json" };
import { wallMs } from "../../base/clock.ts";
import { StartError } from "../../base/errors.ts";
import { concurrentIndexes, type Dialect, migrationsFor, worksFrom } from "./migrations.ts";

/** The newest version of the schema. */
export const knownSteps = migrationsFor("sqlite").length;

interface AppliedStep {
  version: number | string;
  checksum: string | null;
  /** Number of steps that a version of Headrace must know to use the schema after this step; null: all. */
  works_from: number | string | null;
  /** Version of the Headrace that applied the step; null for older rows. */
  made_by: string | null;
}

/** Columns that were added to the table of steps later, with their types; null in older rows. */
const laterColumns = { checksum: "TEXT", works_from: "INTEGER", made_by: "TEXT" } as const;

/**
 * Applies the missing steps. Call it in an exclusive transaction, so that of several concurrent starts only one
 * migrates. `last`: the step after which it stops, as an older Headrace would.
 */
export async function bringUpToDate(tx: SQL, dialect: Dialect, last = knownSteps): Promise<void> {
  const applied = await appliedSteps(tx, dialect);
  requireKnown(applied);
  const steps = migrationsFor(dialect).slice(0, last);
  for (const { version, checksum } of applied) {
    // Steps have no checksum if they were applied before checksums existed.
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
  // A new PostgreSQL database has no rows, so its large indexes are built at once: no writer has to wait.
  if (dialect === "sqlite" || applied.length > 0 || last < knownSteps) return;
  for (const statement of concurrentIndexes().values()) await tx.unsafe(statement.replace("CONCURRENTLY ", ""));
}

/** `from`: the number of steps that the database has; `to`: the number that this Headrace knows. */
export interface PendingSteps {
  from: number;
  to: number;
}

/**
 * Returns the steps that `bringUpToDate` would apply. Undefined if there are none, or the database has no tables yet.
 * Throws a StartError for an unknown database.
 */
export async function pendingSteps(db: SQL, dialect: Dialect): Promise<PendingSteps | undefined> {
  const applied = await readSteps(db, dialect);
  requireKnown(applied);
  const from = Number(applied.at(-1)?.version ?? 0);
  return from > 0 && from < knownSteps ? { from, to: knownSteps } : undefined;
}

/**
 * Throws a StartError unless this Headrace can use the schema as it is. For commands that run beside a server, which a
 * migration would break.
 */
export async function requireCurrent(db: SQL, dialect: Dialect): Promise<void> {
  const applied = await readSteps(db, dialect);
  requireCompatible(applied, "use");
  const version = newestOf(applied);
  if (version >= knownSteps) return;
  throw new StartError(
    `The database has schema version ${version}, this Headrace needs ${knownSteps}: start the server again with this Headrace, which brings it up to date.`,
  );
}

export interface SchemaState {
  /** The version of the database's schema; 0 for a new database. */
  version: number;
  /** The newest schema version that this Headrace knows. */
  known: number;
  /** True if this Headrace can work with a newer schema than its own. */
  isCompatible: boolean;
  /** Version of the Headrace that made the newest step. Undefined if unknown. */
  madeBy: string | undefined;
  /** Number of the first step that differs from this Headrace's own. */
  foreignStep: number | undefined;
}

/** Reads the state of the schema. Changes and refuses nothing. */
export async function schemaState(db: SQL, dialect: Dialect): Promise<SchemaState> {
  const applied = await readSteps(db, dialect);
  const foreign = otherStep(applied);
  return {
    version: newestOf(applied),
    known: knownSteps,
    isCompatible: isCompatible(applied),
    madeBy: applied.at(-1)?.made_by ?? undefined,
    foreignStep: foreign && Number(foreign.version),
  };
}

/** Returns the columns of the table of steps. Empty for a new database. */
async function columnsOfSteps(db: SQL, dialect: Dialect): Promise<ReadonlySet<string>> {
  const columns: { name: string }[] =
    dialect === "sqlite"
      ? await db`SELECT name FROM pragma_table_info('schema_migrations')`
      : await db`
          SELECT attname AS name FROM pg_attribute
          WHERE attrelid = to_regclass('schema_migrations') AND attnum > 0 AND NOT attisdropped`;
  return new Set(columns.map(({ name }) => name));
}

/** Returns the applied steps in order; none for a new database. */
async function readSteps(db: SQL, dialect: Dialect): Promise<AppliedStep[]> {
  const columns = await columnsOfSteps(db, dialect);
  if (columns.size === 0) return [];
  const later = Object.keys(laterColumns).map((name) => (columns.has(name) ? name : `NULL AS ${name}`));
  return db.unsafe(`SELECT version, ${later.join(", ")} FROM schema_migrations ORDER BY version`);
}

/**
 * Returns the applied steps. Makes the table of steps only if needed, so that a role that cannot create tables can
 * start if the tables are up to date.
 */
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

/** Reports whether this Headrace may use the schema although it does not know its latest steps. */
function isCompatible(applied: readonly AppliedStep[]): boolean {
  return applied.every(
    ({ version, works_from }) =>
      Number(version) <= knownSteps || (works_from !== null && Number(works_from) <= knownSteps),
  );
}

function requireCompatible(applied: readonly AppliedStep[], verb: "start" | "use"): void {
  if (isCompatible(applied)) return;
  const madeBy = applied.at(-1)?.made_by;
  const maker = madeBy ? `, made by Headrace ${madeBy}` : "";
  throw new StartError(
    `The database has schema version ${newestOf(applied)}${maker}, this Headrace ${packageJson.version} knows ${knownSteps} and cannot work with that one: ${verb} the newer Headrace that wrote it, or restore the backup from before (docs/upgrading.md).`,
  );
}

function requireKnown(applied: readonly AppliedStep[]): void {
  requireCompatible(applied, "start");
  const other = otherStep(applied);
  if (!other) return;
  throw new StartError(
    `Step ${other.version} of the database's schema is not the one that this Headrace knows: another build has made it, such as ` +
      "one between two releases. Start the Headrace that made it, or restore a backup from before.",
  );
}

/** Returns the first applied step that differs from the one that this Headrace knows. Compares only the known steps. */
function otherStep(applied: readonly AppliedStep[]): AppliedStep | undefined {
  return applied.find(
    ({ version, checksum }) =>
      Number(version) <= knownSteps && checksum !== null && checksum !== checksumOf(Number(version)),
  );
}

/** Returns the checksum of a step's text, the same for both databases, regardless of line breaks. */
function checksumOf(version: number): string {
  const statements = migrationsFor("sqlite")[version - 1] ?? [];
  return createHash("sha256")
    .update(statements.map((statement) => statement.replace(/\s+/g, " ")).join(";\n"))
    .digest("hex");
}
