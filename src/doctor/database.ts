// Checks the database: whether it is readable, intact, of this version, and sealed with this installation's secret.
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { KeyRing } from "../domain/key-ring.ts";
import { formatBytes } from "../engines/llama/byte-size.ts";
import { installationFault, wasUsed } from "../maintenance/installation-id.ts";
import { secretInUse } from "../maintenance/installation-secret.ts";
import { type Database, dialectOf } from "../storage/sql/database.ts";
import { timeDatabase } from "../storage/sql/database-clock.ts";
import { requireSupported } from "../storage/sql/open-postgres.ts";
import { writeRefusal } from "../storage/sql/open-to-read.ts";
import { type PostgresFacts, postgresFacts } from "../storage/sql/postgres-facts.ts";
import { missingIndexes } from "../storage/sql/postgres-indexes.ts";
import { connectionsOfProcess } from "../storage/sql/postgres-pool.ts";
import { quickCheck } from "../storage/sql/quick-check.ts";
import { schemaState } from "../storage/sql/schema.ts";
import { quoted } from "./data-directory.ts";
import { reasonOf } from "./examine.ts";
import { type Check, type Finding, type Findings, failure, ok, skipped, warning } from "./finding.ts";
import { databaseName, type Subject } from "./subject.ts";

const checkMs = 4_000;
const largeWalBytes = 256 * 2 ** 20;
const slowRoundTripMs = 20;

export function databaseChecks(subject: Subject): Check[] {
  const { dataDir, databaseUrl } = subject;
  const file = dataDir === undefined ? undefined : join(dataDir, databaseName);
  if (databaseUrl === undefined && (file === undefined || !existsSync(file))) {
    return [{ name: "SQLite", run: () => missing(dataDir) }];
  }
  const ofKind =
    databaseUrl !== undefined
      ? [{ name: "PostgreSQL", run: () => postgres(subject, databaseUrl) }]
      : file === undefined
        ? []
        : [
            { name: "SQLite", run: () => sqlite(subject, file) },
            { name: "SQLite file", run: () => soundness(file), deadlineMs: checkMs + 2_000 },
          ];
  return [
    ...ofKind,
    { name: "installation", run: () => onDatabase(subject, (db) => installation(db, subject)) },
    { name: "schema", run: () => onDatabase(subject, (db) => schema(db, subject)) },
    { name: "secret", run: () => onDatabase(subject, (db) => secret(db, subject)) },
  ];
}

function missing(dataDir: string | undefined): Finding {
  if (dataDir === undefined || !wasUsed(dataDir)) {
    return skipped("SQLite", "there is no headrace.db yet: the first start makes it");
  }
  return failure(
    "SQLite",
    `headrace.db is missing in ${dataDir}, which was used before: the server does not start`,
    `If the server uses PostgreSQL, set HEADRACE_DATABASE_URL as it has it. Otherwise put the file back, or restore a backup: headrace restore BACKUP --data-dir ${quoted(dataDir)}`,
  );
}

/**
 * Runs a check on the database. Returns undefined if the database cannot be opened, because another check reports that.
 */
async function onDatabase(
  { database }: Subject,
  check: (db: Database) => Promise<Finding | undefined>,
): Promise<Finding | undefined> {
  const db = await database().catch(() => undefined);
  return db && check(db);
}

async function sqlite({ database }: Subject, file: string): Promise<Finding> {
  try {
    await database();
  } catch (error) {
    return failure("SQLite", `${file} cannot be read: ${reasonOf(error)}`, unreadable(file, error));
  }
  const bytes = sizeOf(file);
  const walBytes = sizeOf(`${file}-wal`);
  const found = `${formatBytes(bytes)}, write-ahead log ${formatBytes(walBytes)}`;
  if (walBytes < largeWalBytes) return ok("SQLite", found);
  return warning(
    "SQLite",
    found,
    "Something reads without end and keeps the log from being emptied: end other programs that have headrace.db open (lsof), then restart the server.",
  );
}

function unreadable(file: string, error: unknown): string {
  const code = (error as { code?: string } | null)?.code ?? "";
  if (/NOTADB|CORRUPT/.test(code))
    return `Restore a backup, and keep the damaged file: mv ${quoted(file)} ${quoted(`${file}.damaged`)}`;
  return "Run this as the user that runs the server, who must be able to write the file and its directory.";
}

async function soundness(file: string): Promise<Finding> {
  const name = "SQLite file";
  const remedy = "Stop the server, copy the data directory as it is, then restore a backup.";
  try {
    const result = await quickCheck(file, checkMs);
    if (result.state === "sound") return ok(name, "sound (PRAGMA quick_check)");
    if (result.state === "unfinished") {
      const command = `sqlite3 ${quoted(file)} 'PRAGMA quick_check'`;
      return skipped(
        name,
        `${formatBytes(sizeOf(file))} are more than ${checkMs / 1000} s are enough to check; at leisure: ${command}`,
      );
    }
    return failure(name, `damaged: ${result.what}`, remedy);
  } catch (error) {
    return failure(name, `cannot be checked: ${reasonOf(error)}`, remedy);
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Reports a fault if the data directory was used with another database before. */
async function installation(db: Database, { dataDir }: Subject): Promise<Finding | undefined> {
  const fault = dataDir === undefined ? undefined : await installationFault(db, dataDir);
  return fault && failure("installation", `the server does not start: ${fault.found}`, fault.remedy);
}

async function schema(db: Database, { server }: Subject): Promise<Finding> {
  const { version, known, isCompatible, madeBy, foreignStep } = await schemaState(db, dialectOf(db));
  if (!isCompatible) {
    return failure(
      "schema",
      `version ${version}, and this Headrace knows ${known}: ${madeBy ? `Headrace ${madeBy}` : "a newer one"} wrote it`,
      "Start the newer Headrace, or restore the backup from before its first start.",
    );
  }
  if (foreignStep !== undefined) {
    return failure(
      "schema",
      `step ${foreignStep} was made by another build`,
      "Start the Headrace that made it, or restore a backup from before.",
    );
  }
  if (version === known) return ok("schema", `version ${version}, that of this Headrace`);
  if (version > known) {
    return warning(
      "schema",
      `version ${version}${madeBy ? `, made by Headrace ${madeBy}` : ""}: this Headrace knows ${known}, and can work with it`,
      "What the newer Headrace added is not looked at, such as limits of a kind that this one does not know. Go forward again once you can.",
    );
  }
  const found = version === 0 ? "no tables yet" : `version ${version}, and this Headrace has ${known}`;
  const remedy = server
    ? "The server that runs is older than this command: restart it with this version, after a backup."
    : "The next start brings it up to date. Make a backup first.";
  return version === 0 ? skipped("schema", found) : warning("schema", found, remedy);
}

async function secret(db: Database, subject: Subject): Promise<Finding> {
  let secrets: KeyRing | undefined;
  try {
    secrets = subject.secret();
  } catch (error) {
    return failure(
      "secret",
      reasonOf(error),
      "Restore the file `secret` from a backup: with another one every key is refused.",
    );
  }
  if (!secrets) {
    return failure(
      "secret",
      "there is a database, and neither HEADRACE_SECRET nor the file `secret`",
      "Set HEADRACE_SECRET as for the server, or restore the file `secret` from a backup: with another one every key is refused.",
    );
  }
  let found: Uint8Array | undefined;
  try {
    found = await secretInUse(db, secrets, Math.floor(Date.now() / 1000));
  } catch (error) {
    return skipped("secret", `cannot be compared before the schema is right: ${reasonOf(error)}`);
  }
  if (found === secrets[0]) return ok("secret", "the one that the database was set up with");
  if (found) return ok("secret", "that of the database is among them; the next start takes over the first");
  return failure(
    "secret",
    "not the one that the database was set up with, so every key is refused",
    "Set HEADRACE_SECRET as it was before, or unset it where the file `secret` is the right one.",
  );
}

async function postgres({ database, server }: Subject, url: string): Promise<Findings> {
  let db: Database | undefined;
  try {
    db = await database();
  } catch (error) {
    return failure("PostgreSQL", reasonOf(error), "See what the message says; psql with the same URL asks the same.");
  }
  if (!db) return undefined;
  const refusal = await writeRefusal(url);
  if (refusal !== undefined) {
    return failure(
      "PostgreSQL",
      `it takes no writes: ${refusal}`,
      "Name the primary in HEADRACE_DATABASE_URL, or end what makes it read-only; on a full disk make room there.",
    );
  }
  const [facts, { roundTripMs }] = [await postgresFacts(db), await timeDatabase(db)];
  const address = { server: new URL(url).host, database: new URL(url).pathname.slice(1), user: "" };
  try {
    requireSupported(facts, address);
  } catch (error) {
    return failure("PostgreSQL", reasonOf(error), "See what the message says.");
  }
  const major = Math.floor(Number(facts.version) / 10_000);
  const tls = facts.tls ? "TLS" : "no TLS";
  const found = `${major} at ${address.server}, ${facts.encoding}, ${tls}, ${roundTripMs.toFixed(1)} ms there and back`;
  const head =
    roundTripMs < slowRoundTripMs
      ? ok("PostgreSQL", found)
      : warning("PostgreSQL", found, "Put it nearer: each new key and each change waits for several of these.");
  return [head, encryption(facts, url), rights(facts), connections(facts, server !== undefined), await indexes(db)];
}

/** Reports indexes that a server still has to build. An older schema, which the next start updates, has none of them. */
async function indexes(db: Database): Promise<Finding | undefined> {
  const { version, known } = await schemaState(db, "postgres");
  const missing = version < known ? [] : await missingIndexes(db);
  if (missing.length === 0) return undefined;
  return warning(
    "PostgreSQL indexes",
    `not built yet: ${missing.join(", ")}; lists of requests of all accounts may fail with 503`,
    "A running server builds them and logs index_built for each. If it logs indexes_not_built, the detail is the error code of PostgreSQL.",
  );
}

function encryption({ tls }: PostgresFacts, url: string): Finding | undefined {
  const { hostname } = new URL(url);
  if (tls || /^(localhost|127\.|\[::1\]|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.)/.test(hostname)) return undefined;
  return warning(
    "PostgreSQL TLS",
    "records travel unencrypted to an address that is not of a private network",
    "Add ?sslmode=require to HEADRACE_DATABASE_URL.",
  );
}

function rights({ mayCreate, foreignTable }: PostgresFacts): Finding {
  const name = "PostgreSQL role";
  if (foreignTable !== undefined) {
    return failure(
      name,
      `it does not own the table ${foreignTable}, so no update can change it`,
      "As an administrator: REASSIGN OWNED BY other TO this role.",
    );
  }
  if (!mayCreate) {
    return warning(
      name,
      "it may make no tables, which the next update needs",
      "As an administrator: ALTER DATABASE … OWNER TO this role, or GRANT CREATE ON SCHEMA public TO it.",
    );
  }
  return ok(name, "may read, write and update the tables");
}

function connections(facts: PostgresFacts, isRunning: boolean): Finding {
  const name = "PostgreSQL connections";
  const { maxConnections, connections: used, reservedConnections, roleLimit } = facts;
  const free = maxConnections - reservedConnections - used;
  const found = `${used} of ${maxConnections} in use; each Headrace keeps up to ${connectionsOfProcess}`;
  const remedy = `Raise max_connections, or the limit of the role, to ${connectionsOfProcess} for each replica and some for others.`;
  if (roleLimit !== undefined && roleLimit < connectionsOfProcess) {
    return failure(
      name,
      `the role may have only ${roleLimit}; each Headrace keeps up to ${connectionsOfProcess}`,
      remedy,
    );
  }
  if (free <= 0) return failure(name, found, remedy);
  return !isRunning && free < connectionsOfProcess ? warning(name, found, remedy) : ok(name, found);
}
