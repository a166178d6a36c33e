// Real PostgreSQL servers for tests: found on this machine, started on a free port, gone with the process that started them.
import { spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { SQL } from "bun";
import { openPostgres } from "../../src/storage/sql/database.ts";

export interface PostgresServer {
  /** URL of a database, for the role that owns all of them and may no more than that. A password is in it. */
  urlOf(database: string): string;
  /** The same for the superuser. */
  adminUrlOf(database: string): string;
  /** The URL of a new, empty database. */
  emptyDatabase(): Promise<string>;
  /** The URL of a new database that has all tables already. */
  freshDatabase(): Promise<string>;
  /** Ends open connections first. */
  stop(): Promise<void>;
  /** On the port that it had. */
  start(): Promise<void>;
  /** Takes all of it off the processor: connections stay open, and nothing answers any more. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Stops it and removes its files. */
  [Symbol.asyncDispose](): Promise<void>;
}

let shared: Promise<PostgresServer> | undefined;

/** The server that all tests of this process share: not for those that stop it. */
export function sharedPostgres(): Promise<PostgresServer> {
  shared ??= startPostgres();
  return shared;
}

/** URL of a new database with all tables, on the shared server. Nobody need remove it. */
export async function freshDatabase(): Promise<string> {
  return (await sharedPostgres()).freshDatabase();
}

const binaries = ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"];
const oldest = 15;

/** Where `postgres` and `initdb` are: the newest that is installed, or TEST_POSTGRES_BIN. */
export function postgresBinaries(): string {
  const given = process.env["TEST_POSTGRES_BIN"];
  if (given !== undefined) return given;
  const found = binaries
    .flatMap((directory) =>
      existsSync(directory) ? readdirSync(directory).map((name) => join(directory, name, "bin")) : [],
    )
    .filter((path) => existsSync(join(path, "initdb")))
    .map((path) => ({ path, version: Number(/(?:postgresql[/@]|\/)(\d+)\/bin$/.exec(path)?.[1] ?? 0) }))
    .filter(({ version }) => version >= oldest)
    .sort((a, b) => b.version - a.version);
  const [newest] = found;
  if (newest) return newest.path;
  const onPath = Bun.which("postgres");
  if (onPath !== null) return join(onPath, "..");
  throw new Error(
    `No PostgreSQL ${oldest} or later on this machine. Run \`npm test\`, which installs it, or set TEST_POSTGRES_BIN to the directory of \`postgres\` and \`initdb\`.`,
  );
}

/**
 * Owns the server, so that it ends with the process that started it, whatever the end: standard input is closed then.
 * Answers each command with a line. The directory is in $0, the port in $1, the binaries in $2.
 */
const keeper = `
trap '' INT TERM HUP
children() { cat "/proc/$p/task/$p/children" 2>/dev/null; }
run() {
  "$2/postgres" -D "$0/data" -p "$1" >>"$0/log" 2>&1 </dev/null &
  p=$!
  until grep -q '^ready' "$0/data/postmaster.pid" 2>/dev/null; do
    kill -0 $p 2>/dev/null || { wait $p; p=; return 1; }
    sleep 0.02
  done
}
end() { [ -z "$p" ] || { kill -CONT $p $(children); kill -$1 $p; wait $p; p=; }; } 2>/dev/null
"$2/initdb" -D "$0/data" -U postgres --pwfile "$0/password" --auth md5 --no-sync --encoding UTF8 --locale C \\
  --locale-provider icu --icu-locale en >"$0/log" 2>&1 && cat "$0/settings" >>"$0/data/postgresql.conf" && run "$@" && echo ok || { cat "$0/log"; echo failed; }
while read -r command; do
  case $command in
    stop) end INT; echo ok ;;
    start) run "$@" && echo ok || { cat "$0/log"; echo failed; } ;;
    pause) kill -STOP $p $(children) 2>/dev/null; echo ok ;;
    resume) kill -CONT $p $(children) 2>/dev/null; echo ok ;;
  esac
done
end QUIT
rm -rf "$0"
`;

/**
 * The order of texts is that of English in its databases, as it is in many an installation: nothing may depend on it.
 * Commits do not wait for the disk.
 */
const settings = `
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
shared_buffers = 64MB
fsync = off
full_page_writes = off
synchronous_commit = off
autovacuum = off
log_min_messages = fatal
`;

export interface PostgresOptions {
  /** More lines of postgresql.conf. */
  settings?: string;
}

/** A server of a test's own, such as one that it stops. Another process may take the free port first: then it tries again. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnFreePort(options);
    } catch (error) {
      if (attempt === 3 || !String(error).includes("could not create any TCP/IP sockets")) throw error;
    }
  }
}

async function startOnFreePort(options: PostgresOptions): Promise<PostgresServer> {
  const password = crypto.randomUUID();
  const directory = mkdtempSync(join(tmpdir(), "headrace-postgres-"));
  writeFileSync(join(directory, "settings"), settings + (options.settings ?? ""));
  writeFileSync(join(directory, "password"), password, { mode: 0o600 });
  // It refuses to run as root.
  const isRoot = process.getuid?.() === 0;
  if (isRoot) {
    const [uid, gid] = await ownerFor();
    for (const path of ["", "settings", "password"]) chownSync(join(directory, path), uid, gid);
  }
  const asUser = isRoot ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] : [];
  const port = await freePort();
  const [command = "sh", ...args] = [...asUser, "sh", "-c", keeper, directory, String(port), postgresBinaries()];
  const child = spawn(command, args, { cwd: "/", stdio: ["pipe", "pipe", "inherit"], detached: true });
  child.unref();
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answered = async () => {
    for (let said = ""; ; ) {
      const { value, done } = await answers.next();
      if (value === "ok") return;
      if (done || value === "failed") throw new Error(`PostgreSQL did not start:\n${said}`);
      said += `${value}\n`;
    }
  };
  const order = async (what: string) => {
    child.stdin.write(`${what}\n`);
    await answered();
  };
  await answered();

  const urlFor = (role: string) => (database: string) =>
    `postgres://${role}:${password}@127.0.0.1:${port}/${encodeURIComponent(database)}`;
  const [urlOf, adminUrlOf] = [urlFor("headrace"), urlFor("postgres")];
  const administer = async (...statements: string[]) => {
    const db = new SQL(adminUrlOf("postgres"), { max: 1 });
    try {
      for (const statement of statements) await db.unsafe(statement);
    } finally {
      await db.close();
    }
  };
  await administer(`CREATE ROLE headrace LOGIN PASSWORD '${password}'`);
  let databases = 0;
  let template: Promise<string> | undefined;
  const create = async (more = "") => {
    const name = `headrace_${++databases}`;
    await administer(`CREATE DATABASE ${name} OWNER headrace ${more}`);
    return name;
  };
  const migrated = async () => {
    const name = await create();
    await (await openPostgres(urlOf(name))).close();
    return name;
  };
  return {
    urlOf,
    adminUrlOf,
    emptyDatabase: async () => urlOf(await create()),
    async freshDatabase() {
      template ??= migrated();
      return urlOf(await create(`TEMPLATE ${await template}`));
    },
    stop: () => order("stop"),
    start: () => order("start"),
    pause: () => order("pause"),
    resume: () => order("resume"),
    async [Symbol.asyncDispose]() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.stdin.end();
      await ended;
    },
  };
}

async function ownerFor(): Promise<[uid: number, gid: number]> {
  const ids = ["-u", "-g"].map(async (which) => Number(await Bun.$`id ${which} postgres`.text()));
  const [uid = 0, gid = 0] = await Promise.all(ids);
  return [uid, gid];
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
