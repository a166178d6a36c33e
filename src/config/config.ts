// The configuration of Headrace, validated and frozen. Flags override environment variables, which override
// headrace.yaml, which overrides the defaults.
import { availableParallelism } from "node:os";
import { dirname } from "node:path";
import type * as z from "zod";
import { systemClock } from "../base/clock.ts";
import type { LogLevel } from "../base/log.ts";
import { trimSlashes } from "../base/text/http-url.ts";
import { findConfigFile, type OpenedFile, openFile } from "./config-file.ts";
import { exposureProblems, exposureWarnings } from "./exposure.ts";
import {
  type AuditConfig,
  auditConfig,
  type CacheConfig,
  type CommandConfig,
  cacheConfig,
  changedKeys,
  commandConfigs,
  type ExportConfig,
  exportConfig,
  type FilesConfig,
  filesConfig,
  type MemoryConfig,
  type ModelFileConfig,
  memoryConfig,
  modelFileConfigs,
  type OAuthConfig,
  oauthConfig,
  type ReloadableConfig,
  reloadableConfig,
  type SsoConfig,
  type StartupKeys,
  ssoConfig,
  startupKeys,
} from "./file-config.ts";
import { bareHost, decodeSecrets, defaultDataDir, type Env, resolvePath } from "./formats.ts";
import { type PullSource, readPullSource } from "./hugging-face.ts";
import { type LogFormat, type Mode, type Option, options, secretVariables } from "./options.ts";
import { locationOutsideFile, type Problem, throwIfAny } from "./problems.ts";
import { SecretValues } from "./references/secret-values.ts";
import { withVariableFiles } from "./references/variable-files.ts";
import { ignoreProxies, prepareProcess } from "./server-process.ts";
import { type Flags, OptionReader, type SourceKind, variableWarnings } from "./sources.ts";
import { readTracing, type TracingConfig } from "./tracing.ts";

export type {
  AuditConfig,
  CacheConfig,
  CommandConfig,
  DeploymentConfig,
  ExportConfig,
  FilesConfig,
  ModelConfig,
  ReloadableConfig,
  SsoConfig,
  UpstreamConfig,
} from "./file-config.ts";
export type { PullSource } from "./hugging-face.ts";
export { flagAttribute, type LogFormat, type Mode, type ServeFlag, serveFlags } from "./options.ts";
export { ConfigError, type Problem, renderLocation as renderPlace } from "./problems.ts";
export { configJsonSchema, configReference } from "./reference.ts";
export type { SecretState } from "./references/secret-state.ts";
export { SecretValues } from "./references/secret-values.ts";
export { requestLimitProblems } from "./server-process.ts";
export type { Flags } from "./sources.ts";
export type { TracingConfig } from "./tracing.ts";

/** The whole configuration of `headrace serve`, as deep-frozen plain data. */
export interface Config extends ReloadableConfig {
  /** The host to listen on. An IPv6 address has no brackets. */
  readonly host: string;
  /** The port to listen on; 0 means any free port. */
  readonly port: number;
  readonly mode: Mode;
  readonly logFormat: LogFormat;
  /** If set, overrides `logs.level`. */
  readonly logLevel: LogLevel | undefined;
  /** The absolute path of the data directory. */
  readonly dataDir: string;
  readonly backupBeforeUpgrade: boolean;
  /** The server's public URL, without `/v1` and without a trailing slash. Always set in production. */
  readonly publicUrl: string | undefined;
  /** Addresses and CIDR ranges of proxies whose forwarding headers are trusted. */
  readonly trustedProxies: readonly string[];
  /** Host names and addresses, without port and brackets. */
  readonly allowedHosts: readonly string[];
  /**
   * The installation's secrets: 64 hex digits each, the current one first. Undefined means that the secret is in the
   * data directory.
   */
  readonly secretsHex: readonly string[] | undefined;
  /** The URL of PostgreSQL, a secret. Undefined means SQLite in the data directory. */
  readonly databaseUrl: string | undefined;
  /** The URL of Redis, a secret. Undefined means that limits are counted in memory. */
  readonly redisUrl: string | undefined;
  /** A secret with which clients may read the metrics. */
  readonly metricsToken: string | undefined;
  /** The origin at which other replicas reach this one, without a trailing slash. */
  readonly advertiseUrl: string | undefined;
  /** The number of processes that serve model requests. 1 means that this process does all work itself. */
  readonly workers: number;
  /** Seconds for which a stopping server still answers requests while it reports that it is not ready. */
  readonly lameDuckSeconds: number;
  readonly discoverLocal: boolean;
  /** True if webhooks may post to this machine; only possible in development. */
  readonly webhookLoopback: boolean;
  /** Private hosts, addresses and ranges to which operators' webhooks may post. */
  readonly webhookNetworks: readonly string[];
  /** Undefined means no tracing. */
  readonly tracing: TracingConfig | undefined;
  readonly audit: AuditConfig;
  /** Undefined means that no records and metrics are sent. */
  readonly export: ExportConfig | undefined;
  /** Undefined means that no mail is sent. */
  readonly mail: MailConfig | undefined;
  /** Undefined means no single sign-on. */
  readonly sso: SsoConfig | undefined;
  readonly oauth: OAuthConfig;
  readonly files: FilesConfig;
  readonly cache: CacheConfig;
  /** The built-in engine. A number that is undefined is chosen for each model. */
  readonly engine: {
    /** True if the demo model that ships with Headrace is served. */
    readonly demo: boolean;
    /** Absolute paths of GGUF files. */
    readonly models: readonly string[];
    /** The context length in tokens. */
    readonly context: number | undefined;
    readonly parallel: number | undefined;
    readonly threads: number | undefined;
    /** The memory for models. */
    readonly memory: MemoryConfig;
    /** Commands that serve models. */
    readonly commands: readonly CommandConfig[];
    /** Model files that other programs than the built-in engine run. */
    readonly files: readonly ModelFileConfig[];
  };
  /** The flags of the command line, which hold no secret. */
  readonly flags: Flags;
  readonly file: {
    /** The absolute path to watch for changes, even if the file does not exist yet. */
    readonly path: string;
    readonly found: boolean;
    /** True if there is no file, or the file has no value. */
    readonly isEmpty: boolean;
    /** The text of the file. Undefined if there is no file. */
    readonly text: string | undefined;
    /** The start-up keys of the file, which only a restart can change. */
    readonly startup: StartupKeys;
  };
}

export interface MailConfig {
  /** An `smtp://` or `smtps://` URL. A secret if it contains a password. */
  readonly url: string;
  readonly from: string;
}

/** The settings of the configuration file alone, as a reload reads them. */
export interface ConfigFile extends ReloadableConfig {
  readonly path: string;
  readonly text: string | undefined;
  readonly isEmpty: boolean;
  readonly startup: StartupKeys;
}

export interface ConfigInputs {
  /** The options as Commander's `opts()` returns them. */
  flags?: Flags;
  env?: Env;
  cwd?: string;
  /** Holds the secrets that the configuration refers to, for later reloads. */
  secrets?: SecretValues;
}

/** Loads the whole configuration. Rejects with a ConfigError that lists every problem found. */
export async function loadConfig(inputs: ConfigInputs = {}): Promise<Config> {
  const { flags = {}, env: given = process.env, cwd = process.cwd() } = inputs;
  const { secrets = secretsOf(given) } = inputs;
  const env = await withVariableFiles(given, secretVariables, { secrets, cwd });
  const file = await findConfigFile(flags, env, cwd, secrets);
  const reader = new OptionReader({ flags, env, file: file.yaml });
  const absolute = (path: string, from: SourceKind) =>
    resolvePath(path, from === "file" ? dirname(file.path) : cwd, env);
  const host = reader.take(options.host);
  const mode = reader.take(options.mode);
  const publicUrl = reader.take(options.publicUrl);
  // If the file is unreadable, checks that depend on the mode or the public URL are skipped: the file might set these.
  const readable = file.yaml === undefined ? file.problems.length === 0 : file.yaml.data !== undefined;
  if (readable) reader.problems.push(...exposureProblems(host, mode, publicUrl));
  const startup = {
    host: bareHost(host.value),
    mode: mode.value,
    publicUrl: trimmed(publicUrl.value),
    webhookLoopback: readWebhookLoopback(reader, mode.value),
    ...readOthers(reader, absolute),
  };
  const tracing = readTracing(reader, file.data.tracing);
  if (file.data.cache.store === "redis" && startup.redisUrl === undefined)
    reader.problems.push(cacheWithoutRedis(file));
  throwIfAny([...reader.problems, ...file.problems]);
  secrets.use("file", file.references);
  const warnings = [
    ...[...file.warnings, ...variableWarnings(given)],
    ...[...exposureWarnings(startup), ...tracing.warnings],
  ];
  return deepFreeze({
    ...startup,
    engine: {
      ...startup.engine,
      memory: memoryConfig(file.data),
      commands: commandConfigs(file.data, (path) => absolute(path, "file")),
      files: modelFileConfigs(file.data, (path) => absolute(path, "file")),
    },
    dataDir: startup.dataDir ?? defaultDataDir(env),
    lameDuckSeconds: startup.lameDuckSeconds ?? defaultLameDuckSeconds(startup),
    sso: ssoConfig(file.data),
    oauth: oauthConfig(file.data),
    files: filesConfig(file.data, (path) => absolute(path, "file")),
    cache: cacheConfig(file.data),
    tracing: tracing.config,
    audit: auditConfig(file.data),
    export: exportConfig(file.data),
    ...reloadableConfig(file.data, warnings),
    file: {
      ...{ path: file.path, found: file.yaml !== undefined, startup: startupKeys(file.data) },
      isEmpty: file.yaml?.isEmpty ?? true,
      text: file.text,
    },
    flags: { ...flags },
  });
}

function secretsOf(env: Env): SecretValues {
  return new SecretValues({ env, clock: systemClock });
}

function readOthers(reader: OptionReader, absolute: (path: string, from: SourceKind) => string) {
  const dataDir = reader.take(options.dataDir);
  const models = reader.take(options.models);
  const secret = reader.take(options.secret).value;
  return {
    port: reader.take(options.port).value,
    logFormat: reader.take(options.logFormat).value,
    logLevel: reader.take(options.logLevel).value,
    dataDir: dataDir.value === undefined ? undefined : absolute(dataDir.value, dataDir.from),
    backupBeforeUpgrade: reader.take(options.backupBeforeUpgrade).value,
    trustedProxies: reader.take(options.trustedProxies).value,
    allowedHosts: reader.take(options.allowedHosts).value.map(bareHost),
    secretsHex: secret === undefined ? undefined : decodeSecrets(secret),
    ...readStores(reader),
    metricsToken: reader.take(options.metricsToken).value,
    advertiseUrl: trimmed(reader.take(options.advertiseUrl).value),
    workers: readWorkers(reader),
    lameDuckSeconds: reader.take(options.lameDuckSeconds).value,
    discoverLocal: reader.take(options.discoverLocal).value,
    webhookNetworks: reader.take(options.webhookNetworks).value.map(bareHost),
    mail: readMail(reader),
    engine: {
      demo: reader.take(options.demo).value,
      models: models.value.map((path) => absolute(path, models.from)),
      context: reader.take(options.context).value,
      parallel: reader.take(options.parallel).value,
      threads: reader.take(options.threads).value,
    },
  };
}

/**
 * Returns the default: 0 without replicas, because no other server takes over, and 0 in development, where Ctrl-C
 * should stop the server immediately.
 */
function defaultLameDuckSeconds({ mode, databaseUrl }: Pick<Config, "mode" | "databaseUrl">): number {
  return mode === "production" && databaseUrl !== undefined ? 5 : 0;
}

/**
 * Reads the settings of the stores. With PostgreSQL the secret must be set too, and with Redis also PostgreSQL, because
 * replicas share them.
 */
function readStores(reader: OptionReader) {
  const database = reader.take(options.databaseUrl);
  const redis = reader.take(options.redisUrl);
  const secret = reader.take(options.secret);
  if (database.value !== undefined && secret.valid && secret.value === undefined) {
    const fix = "Make one with `openssl rand -hex 32`, and give every replica the same.";
    reader.problems.push({ ...secret.location, message: "is missing; the records in PostgreSQL need it", fix });
  }
  if (redis.value !== undefined && database.valid && database.value === undefined) {
    const fix = "Set HEADRACE_DATABASE_URL as well, or unset HEADRACE_REDIS_URL: one process counts in memory.";
    reader.problems.push({ ...database.location, message: "is missing; HEADRACE_REDIS_URL is set", fix });
  }
  return { databaseUrl: database.value, redisUrl: redis.value };
}

function cacheWithoutRedis({ yaml }: OpenedFile): Problem {
  const location = { ...locationOutsideFile("cache.store"), ...yaml?.locate(["cache", "store"]) };
  const fix = "Set the environment variable HEADRACE_REDIS_URL, or write store: memory.";
  return { ...location, message: "is redis, and no Redis is configured", fix };
}

/** Reads the number of workers. More than one needs Linux, whose kernel distributes connections over processes. */
function readWorkers(reader: OptionReader): number {
  const { value, location } = reader.take(options.workers);
  const workers = value === "auto" ? (isLinux ? availableParallelism() : 1) : value;
  if (workers === 1 || isLinux) return workers;
  reader.problems.push({ ...location, message: "must be 1 on this system, or auto", fix: "Leave it out." });
  return 1;
}

const isLinux = process.platform === "linux";

/**
 * Reads the setting. Refused in production: a public server must not post to addresses that only this machine reaches.
 */
function readWebhookLoopback(reader: OptionReader, mode: Mode): boolean {
  const loopback = reader.take(options.webhookLoopback);
  if (loopback.value && mode === "production") {
    const fix = "Leave it out, and give webhooks an https address on the public internet.";
    reader.problems.push({ ...loopback.location, message: "is for development mode alone", fix });
  }
  return loopback.value;
}

function trimmed(url: string | undefined): string | undefined {
  return url === undefined ? undefined : trimSlashes(url);
}

function readMail(reader: OptionReader): MailConfig | undefined {
  const url = reader.take(options.smtpUrl);
  const from = reader.take(options.mailFrom);
  if (url.value === undefined) return undefined;
  if (from.value !== undefined) return { url: url.value, from: from.value };
  if (from.valid) {
    const fix = "Give the sender of the mail with HEADRACE_MAIL_FROM, or as mail.from in the file.";
    reader.problems.push({ ...from.location, message: "is missing; the mail server is configured", fix });
  }
  return undefined;
}

/**
 * Reads the configuration file alone, for a reload. `path` is `Config.file.path`. Rejects with a ConfigError if the
 * file is missing or invalid, so that the running configuration can stay.
 */
export async function readConfigFile(inputs: {
  path: string;
  env?: Env;
  cwd?: string;
  secrets?: SecretValues;
}): Promise<ConfigFile> {
  const { path, env = process.env, cwd = process.cwd() } = inputs;
  const { secrets = secretsOf(env) } = inputs;
  const file = await openFile({ path, env, cwd, secrets, namedAt: locationOutsideFile("") });
  throwIfAny(file.problems);
  secrets.use("file", file.references);
  const isEmpty = file.yaml?.isEmpty ?? true;
  const { text, data, warnings } = file;
  return deepFreeze({ path, text, isEmpty, ...reloadableConfig(data, warnings), startup: startupKeys(data) });
}

/** Returns the start-up keys of the file, such as `port`, that changed and need a restart to take effect. */
export function keysThatNeedRestart(running: Config, changed: ConfigFile): string[] {
  return changedKeys(running.file.startup, changed.startup);
}

/**
 * Returns the absolute data directory, for commands other than `serve`. Only `data_dir` must be valid in the file: a
 * variable that is set only for the server must not stop these commands. Rejects with a ConfigError.
 */
export async function loadDataDir(inputs: ConfigInputs = {}): Promise<string> {
  const { flags = {}, env = process.env, cwd = process.cwd() } = inputs;
  const file = await findConfigFile(flags, env, cwd);
  const reader = new OptionReader({ flags, env, file: file.yaml });
  const { value, from } = reader.take(options.dataDir);
  const unreadable = file.yaml?.data === undefined;
  const problems = file.problems.filter((problem) => unreadable || problem.path === "data_dir");
  throwIfAny([...reader.problems, ...(from === "file" || from === "default" ? problems : [])]);
  return value === undefined
    ? defaultDataDir(env)
    : resolvePath(value, from === "file" ? dirname(file.path) : cwd, env);
}

/**
 * Returns the database's URL, for commands that run beside a server. Undefined means SQLite in the data directory.
 * Rejects
 * with a ConfigError.
 */
export function loadDatabaseUrl(env: Env = process.env): Promise<string | undefined> {
  return fromVariable(options.databaseUrl, env);
}

/**
 * Returns the URL at which browsers reach the server, without a trailing slash; undefined if not configured. Rejects
 * with a ConfigError.
 */
export async function loadPublicUrl(inputs: ConfigInputs = {}): Promise<string | undefined> {
  const { flags = {}, env = process.env, cwd = process.cwd() } = inputs;
  const file = await findConfigFile(flags, env, cwd);
  const reader = new OptionReader({ flags, env, file: file.yaml });
  const { value } = reader.take(options.publicUrl);
  throwIfAny(reader.problems);
  return trimmed(value);
}

/** Returns the URL of the Redis in which limits are counted for all replicas. Rejects with a ConfigError. */
export function loadRedisUrl(env: Env = process.env): Promise<string | undefined> {
  return fromVariable(options.redisUrl, env);
}

/**
 * Returns the secrets in HEADRACE_SECRET, each as 64 hex digits; undefined if unset. For commands that read the
 * server's files. Rejects with a ConfigError.
 */
export async function loadSecretsHex(env: Env = process.env): Promise<readonly string[] | undefined> {
  const secret = await fromVariable(options.secret, env);
  return secret === undefined ? undefined : decodeSecrets(secret);
}

async function fromVariable(option: Option<z.ZodString, undefined>, given: Env): Promise<string | undefined> {
  const names = option.env === undefined ? [] : [option.env];
  const env = await withVariableFiles(given, names, { secrets: secretsOf(given), cwd: process.cwd() });
  const reader = new OptionReader({ flags: {}, env, file: undefined });
  const { value } = reader.take(option);
  throwIfAny(reader.problems);
  return value;
}

/**
 * Returns the source from which `headrace pull` downloads: HF_ENDPOINT (a mirror) and HF_TOKEN. Throws a ConfigError.
 */
export function loadPullSource(env: Env = process.env): PullSource {
  const { source, problems } = readPullSource(env);
  throwIfAny(problems);
  return Object.freeze(source);
}

/** Checks Bun's limit of outgoing requests, and removes proxy variables from this process. Throws a ConfigError. */
export function prepareServerProcess(): void {
  prepareProcess(process.env);
}

/** Makes this process ignore proxies from the environment, as the server does. */
export function connectDirectly(): void {
  ignoreProxies(process.env);
}

/**
 * Reports whether this process should end with its parent. The parent may be a launcher in `bin/`, which waits for this
 * process, or npm, which ends at a signal without passing it on.
 */
export function endsWithParent(): boolean {
  const launchedBy = process.env["LAUNCHED_BY"];
  return launchedBy === "headrace" || launchedBy === "npm";
}

/** Returns the environment variables of this process, for commands other than `serve`. */
export function processEnvironment(): Readonly<Record<string, string | undefined>> {
  return process.env;
}

/** Freezes plain data recursively. Objects that are already frozen are skipped. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const inner of Object.values(value)) deepFreeze(inner);
  return value;
}
