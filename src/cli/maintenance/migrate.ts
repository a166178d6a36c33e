// `headrace migrate sqlite-to-postgres`: moves the records of a data directory to PostgreSQL, and says what to do next.
import { usdOf } from "../../base/money.ts";
import { loadDatabaseUrl, loadSecretsHex } from "../../config/config.ts";
import type { Recovered } from "../../ledger/ledger-recovery.ts";
import type { Moved } from "../../maintenance/move-to-postgres.ts";
import type { ComparedTable, CopyProgress } from "../../storage/backup/copy-records.ts";
import { command, dataDirOption } from "../command.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatCount, formatUsd } from "../terminal/figures.ts";
import { CliError, exitCodes, formatDuration, formatTable, type Terminal } from "../terminal/terminal.ts";

const toPostgresCommand = command({
  name: "sqlite-to-postgres",
  description:
    "Copy all records of a data directory from SQLite into the empty PostgreSQL database that HEADRACE_DATABASE_URL names, and compare the two.",
  options: {
    ...dataDirOption,
    json: ["--json", "print one JSON object a line: progress, and at the end the comparison"],
  },
  examples: [
    "createdb --host db.example.com --owner headrace headrace",
    "HEADRACE_DATABASE_URL=postgres://… headrace migrate sqlite-to-postgres",
  ],
  help: [
    `Stop the server first. Interrupted, the same command goes on where it stopped; no
server starts on the new database before it is whole. The SQLite file stays as it
is, apart from a note that it was copied.`,
  ],
  run: ({ context, options }) => migrate(context, options),
});

export const migrateCommand = command({
  name: "migrate",
  summary: "move the records to PostgreSQL",
  description: "Move records from one kind of database to another.",
  commands: [toPostgresCommand],
});

async function migrate(context: CliContext, flags: { dataDir?: string; json?: boolean }): Promise<void> {
  const { terminal } = context;
  const databaseUrl = await loadDatabaseUrl(context.env);
  if (databaseUrl === undefined) {
    throw new CliError(
      "Set HEADRACE_DATABASE_URL to the empty PostgreSQL database that takes the records, such as postgres://headrace:password@db.example.com:5432/headrace. It is no flag, as others on the machine could read the password there.",
      exitCodes.usage,
    );
  }
  const startedMs = performance.now();
  const report = flags.json ? jsonReport(terminal) : textReport(terminal);
  // Loaded only here, so that a long-running server does not keep the code in memory.
  const { moveToPostgres } = await import("../../maintenance/move-to-postgres.ts");
  let moved: Moved;
  try {
    moved = await moveToPostgres({
      dataDir: await context.dataDir(flags.dataDir),
      databaseUrl,
      secretsHex: await loadSecretsHex(context.env),
      nowSeconds: Math.floor(context.nowMs() / 1000),
      log: { info() {}, warn() {}, error() {} },
      onDrained: report.drained,
      onProgress: report.progress,
    });
  } finally {
    report.end();
  }
  const seconds = (performance.now() - startedMs) / 1000;
  if (flags.json) terminal.print(JSON.stringify({ event: moved.isSame ? "done" : "different", ...wireOf(moved) }));
  else show(terminal, moved, seconds);
  if (moved.isSame) return;
  const names = moved.tables.filter(({ differences }) => differences.length > 0).map(({ table }) => table);
  throw new CliError(
    `The databases differ in ${names.join(", ")}, so no server starts on the new one. Another program has written to it: make a new, empty database (dropdb, createdb), and run the command again.`,
  );
}

interface Report {
  drained(drained: Recovered): void;
  progress(progress: CopyProgress): void;
  end(): void;
}

const redrawMs = 200;
const lineMs = 5_000;
const jsonMs = 1_000;

function jsonReport(terminal: Terminal): Report {
  let last = 0;
  return {
    drained: ({ settled, interrupted }) => terminal.print(JSON.stringify({ event: "spool", settled, interrupted })),
    progress({ table, rows, totalRows }) {
      if (performance.now() - last < jsonMs) return;
      last = performance.now();
      terminal.print(JSON.stringify({ event: "progress", table, rows, total_rows: totalRows }));
    },
    end() {},
  };
}

/** Reports the progress: redraws a line for a person, and prints a line now and then for a log. */
function textReport(terminal: Terminal): Report {
  const { interactive, stderr } = terminal;
  const erase = () => void (interactive && stderr.write("\r\x1b[2K"));
  let first: { ms: number; rows: number } | undefined;
  let last = 0;
  return {
    drained({ settled, interrupted }) {
      const all = settled + interrupted;
      if (all > 0)
        terminal.note(`The usage of ${formatCount(all)} requests was still on the spool; it is in the database now.`);
    },
    progress({ table, rows, totalRows }) {
      const ms = performance.now();
      first ??= { ms, rows };
      if (ms - last < (interactive ? redrawMs : lineMs)) return;
      last = ms;
      const perMs = (rows - first.rows) / (ms - first.ms);
      const remaining = perMs > 0 ? `, ${formatDuration((totalRows - rows) / perMs / 1000)} left` : "";
      const line = `${Math.floor((rows / totalRows) * 100)} %, ${formatCount(rows)} of ${formatCount(totalRows)} rows, ${table}${remaining}`;
      if (interactive) stderr.write(`\r\x1b[2K${line.slice(0, (stderr.columns ?? 80) - 1)}`);
      else terminal.note(line);
    },
    end: erase,
  };
}

function wireOf({ tables, secretFile }: Moved) {
  return {
    tables: tables.map(({ table, rows, sums, differences }) => ({ table, rows, sums, differences })),
    secret_file: secretFile ?? null,
  };
}

function show(terminal: Terminal, { tables, isSame, secretFile }: Moved, seconds: number): void {
  const { out } = terminal;
  const count = (value: string | number) => formatCount(Number(value));
  const rows = tables
    .filter((table) => table.differences.length > 0 || table.rows[0] > 0)
    .map((table) => [table.table, ...table.rows.map(count), verdictOn(table)]);
  terminal.print(formatTable(["Table", "SQLite", "PostgreSQL", "Columns"], rows, out, [1, 2]));
  const usage = tables.find(({ table }) => table === "usage_records");
  if (usage) {
    const tokens = [0, 1].map(
      (at) => Number(usage.sums["prompt_tokens"]?.[at]) + Number(usage.sums["completion_tokens"]?.[at]),
    );
    const spend = [0, 1].map((at) => formatUsd(usdOf(Number(usage.sums["nano_usd"]?.[at]))));
    terminal.print(`\nTokens of all requests: ${tokens.map(count).join(" and ")}; spend: ${spend.join(" and ")}.`);
  }
  if (!isSame) return;
  const [all = 0] = [tables.reduce((sum, table) => sum + table.rows[1], 0)];
  terminal.print(
    `\nBoth have the same ${count(all)} rows (${formatDuration(seconds)}). From now on start every server with`,
  );
  terminal.print("  HEADRACE_DATABASE_URL  as it was given to this command");
  if (secretFile === undefined) {
    terminal.print("  HEADRACE_SECRET        as it was given to this command");
  } else {
    terminal.print(`  HEADRACE_SECRET        the content of ${secretFile}, without showing it to anybody:`);
    terminal.print(`                           export HEADRACE_SECRET="$(cat ${quotedForShell(secretFile)})"`);
    terminal.print(
      `                           kubectl create secret generic headrace --from-file=HEADRACE_SECRET=${quotedForShell(secretFile)}`,
    );
  }
  terminal.print(
    "A server on this data directory may keep it: its spool and its models are there. One that is started without\nHEADRACE_DATABASE_URL serves from the old records, and warns of it. Keep headrace.db until you trust the new database.",
  );
}

function verdictOn({ differences, rows, sums }: ComparedTable): string {
  if (differences.length === 0) return "the same";
  const [first = ""] = differences;
  const both = first === "rows" ? rows : sums[first];
  return `${differences.join(", ")} differ (${first}: ${both?.join(" and ")})`;
}

function quotedForShell(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
