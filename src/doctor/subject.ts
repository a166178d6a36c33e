// The installation to examine: the configuration as `serve` would read it, and the server that runs on its data
// directory.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { systemClock } from "../base/clock.ts";
import {
  type Config,
  ConfigError,
  type Flags,
  flagAttribute,
  loadConfig,
  loadDatabaseUrl,
  loadDataDir,
  loadRedisUrl,
  loadSecretsHex,
  type Problem,
  SecretValues,
  serveFlags,
} from "../config/config.ts";
import type { KeyRing } from "../domain/key-ring.ts";
import { readCredentials } from "../storage/files/credentials-file.ts";
import { lockState } from "../storage/files/lock-holder.ts";
import { loadSecrets, readSecretFile, secretFile } from "../storage/files/secret-file.ts";
import type { Database } from "../storage/sql/database.ts";
import { openPostgresToRead, openSqliteToRead } from "../storage/sql/open-to-read.ts";
import { once, reasonOf } from "./examine.ts";
import { type ProcessFacts, processFacts } from "./server-process.ts";

type Env = Readonly<Record<string, string | undefined>>;

export interface SubjectInputs {
  /** The flags of `serve`, as Commander returns them. */
  flags: Flags;
  env: Env;
  cwd?: string;
  /** The address given in `--base-url`. */
  namedUrl?: string | undefined;
}

export interface RunningProcess {
  /** The process id. Undefined if the operating system does not tell. */
  pid: number | undefined;
  facts: ProcessFacts | undefined;
}

export interface Subject {
  env: Env;
  /** The configuration. Undefined if it is invalid; `problems` has the reasons. */
  config: Config | undefined;
  problems: readonly Problem[];
  /** The absolute path of the data directory. Undefined if the configuration is so invalid that the path is unknown. */
  dataDir: string | undefined;
  databaseUrl: string | undefined;
  redisUrl: string | undefined;
  /** The running server. Undefined if no server uses the data directory. */
  server: RunningProcess | undefined;
  /** The reason why it is unknown whether a server uses the data directory. */
  lockFault: string | undefined;
  /** Opens the database at the first call. Undefined if there is no database yet. */
  database(): Promise<Database | undefined>;
  /**
   * The secrets of the installation, as the server would use them. Undefined if there are none yet. Throws if they
   * cannot be read.
   */
  secret(): KeyRing | undefined;
  /** The URL at which this machine reaches the server, without `/v1`. Undefined if unknown. */
  localUrl: string | undefined;
  /** The server that `--base-url` or HEADRACE_BASE_URL names, without `/v1`. Undefined if none is named. */
  namedUrl: string | undefined;
  /** Texts that must not appear in any output. */
  secrets: readonly string[];
  close(): Promise<void>;
}

export const databaseName = "headrace.db";

/** Finds the installation to examine. Never rejects: problems are part of the result. */
export async function findSubject({ flags, env, cwd = process.cwd(), namedUrl }: SubjectInputs): Promise<Subject> {
  const given = { flags, env, cwd };
  const { server, lockFault } = findServer(await loadDataDir(given).catch(() => undefined));
  const inputs = server?.facts === undefined ? given : asStarted(given, server.facts);
  const values = new SecretValues({ env: inputs.env, clock: systemClock });
  const loaded = await loadConfig({ ...inputs, secrets: values }).catch(problemsOf);
  const config = "problems" in loaded ? undefined : loaded;
  const problems = "problems" in loaded ? loaded.problems : [];
  const dataDir = config?.dataDir ?? (await loadDataDir(inputs).catch(() => undefined));
  const databaseUrl = config?.databaseUrl ?? (await loadDatabaseUrl(inputs.env).catch(() => undefined));
  const redisUrl = config?.redisUrl ?? (await loadRedisUrl(inputs.env).catch(() => undefined));
  const secretsHex = config?.secretsHex ?? (await loadSecretsHex(inputs.env).catch(() => undefined));
  const opened: Database[] = [];
  const database = once(async () => {
    const db = await openToRead(dataDir, databaseUrl);
    if (db) opened.push(db);
    return db;
  });
  const credentials = dataDir === undefined ? undefined : attempt(() => readCredentials(dataDir));
  return {
    ...{ env, config, problems, dataDir, databaseUrl, redisUrl, server, lockFault, database },
    secret: () => (secretsHex === undefined ? secretsIn(dataDir) : loadSecrets("", secretsHex)),
    namedUrl: namedUrl?.replace(/\/v1$/, ""),
    localUrl: localUrlOf(config, credentials?.base_url),
    secrets: secretsOf({
      env: inputs.env,
      config,
      databaseUrl,
      redisUrl,
      secretsHex,
      dataDir,
      apiKey: credentials?.api_key,
      values: values.values,
    }),
    async close() {
      // Does not wait for open queries: the report is complete, and the command ends.
      for (const db of opened) await db.close({ timeout: 0 }).catch(() => {});
    },
  };
}

interface Given {
  flags: Flags;
  env: Env;
  cwd: string;
}

/** Returns the settings with which the running server was started. Settings of this command override them. */
function asStarted({ flags, env, cwd }: Given, { args = [], environment = {}, directory = cwd }: ProcessFacts): Given {
  const path = (name: string) => {
    const value = flags[name];
    return typeof value === "string" ? { [name]: resolve(cwd, value) } : {};
  };
  return {
    flags: { ...flagsIn(args), ...flags, ...path("config"), ...path("dataDir") },
    env: { ...environment, ...env },
    cwd: directory,
  };
}

/** Returns the flags of `serve` in a command line, as Commander returns them. */
function flagsIn(args: readonly string[]): Flags {
  const flags: Record<string, unknown> = {};
  for (const { syntax, repeatable } of serveFlags()) {
    const [name = "", takesValue] = syntax.split(" ");
    const values = args.flatMap((arg, at): unknown[] => {
      if (arg === name) return takesValue === undefined ? [false] : [args[at + 1]];
      return arg.startsWith(`${name}=`) ? [arg.slice(name.length + 1)] : [];
    });
    if (values.length > 0) flags[flagAttribute(syntax)] = repeatable ? values : values.at(-1);
  }
  return flags;
}

function problemsOf(error: unknown): { problems: readonly Problem[] } {
  if (error instanceof ConfigError) return { problems: error.problems };
  const location = { file: undefined, line: undefined, column: undefined, path: "" };
  return { problems: [{ ...location, message: reasonOf(error), fix: "See what the message says." }] };
}

function findServer(dataDir: string | undefined): Pick<Subject, "server" | "lockFault"> {
  if (dataDir === undefined) return { server: undefined, lockFault: undefined };
  try {
    const lock = lockState(dataDir);
    if (!lock.held) return { server: undefined, lockFault: undefined };
    const facts = lock.pid === undefined ? undefined : processFacts(lock.pid);
    return { server: { pid: lock.pid, facts }, lockFault: undefined };
  } catch (error) {
    return { server: undefined, lockFault: reasonOf(error) };
  }
}

async function openToRead(dataDir: string | undefined, databaseUrl: string | undefined): Promise<Database | undefined> {
  if (databaseUrl !== undefined) return openPostgresToRead(databaseUrl);
  if (dataDir === undefined || !existsSync(join(dataDir, databaseName))) return undefined;
  return openSqliteToRead(join(dataDir, databaseName));
}

function secretsIn(dataDir: string | undefined): KeyRing | undefined {
  if (dataDir === undefined || !existsSync(secretFile(dataDir))) return undefined;
  return readSecretFile(secretFile(dataDir));
}

/**
 * Returns the URL at which this machine reaches the server. For a server that listens on all addresses, this is a
 * loopback address. If the configured port is 0, the port comes from `baseUrl` in credentials.json; undefined if that
 * is the public URL.
 */
function localUrlOf(config: Config | undefined, baseUrl: string | undefined): string | undefined {
  const stored = baseUrl?.replace(/\/v1$/, "");
  if (!config) return stored;
  const { host, port } = config;
  if (port === 0) return stored === config.publicUrl ? undefined : stored;
  const asked = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${asked.includes(":") ? `[${asked}]` : asked}:${port}`;
}

interface SecretLocations {
  env: Env;
  config: Config | undefined;
  databaseUrl: string | undefined;
  redisUrl: string | undefined;
  secretsHex: readonly string[] | undefined;
  dataDir: string | undefined;
  apiKey: string | undefined;
  /** The values of referenced secrets. */
  values: readonly string[];
}

/** Minimum length of a secret that is removed from texts; shorter ones are ordinary words. */
const minSecretLength = 6;

/** Returns all secrets that servers and libraries might repeat in their messages. */
function secretsOf({
  env,
  config,
  databaseUrl,
  redisUrl,
  secretsHex,
  dataDir,
  apiKey,
  values,
}: SecretLocations): string[] {
  const urls = [databaseUrl, redisUrl, config?.mail?.url].flatMap((url) => url ?? []);
  const own = attempt(() => secretsIn(dataDir)) ?? [];
  const found = [
    ...[...values, ...urls.flatMap(passwordsOf)],
    ...[...(secretsHex ?? []), ...(env["HEADRACE_SECRET"]?.split(",") ?? []), env["HEADRACE_API_KEY"], apiKey],
    ...own.map((secret) => Buffer.from(secret).toString("hex")),
    ...(config?.upstreams.map((upstream) => upstream.apiKey) ?? []),
    config?.sso?.clientSecret,
    config?.metricsToken,
  ];
  return found.filter((text) => text !== undefined).filter((text) => text.length >= minSecretLength);
}

function passwordsOf(url: string): string[] {
  const password = attempt(() => new URL(url).password) ?? "";
  return [password, attempt(() => decodeURIComponent(password)) ?? ""];
}

function attempt<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
