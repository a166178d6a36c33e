// The configuration of Headrace: flags over environment over headrace.yaml over defaults, validated and frozen.
import { availableParallelism } from "node:os";
import { dirname } from "node:path";
import type * as z from "zod";
import type { LogLevel } from "../base/log.ts";
import { trimSlashes } from "../base/text/http-url.ts";
import { findConfigFile, type OpenedFile, openFile } from "./config-file.ts";
import { exposureProblems, exposureWarnings } from "./exposure.ts";
import {
  type CacheConfig,
  type CommandConfig,
  cacheConfig,
  changedKeys,
  commandConfigs,
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
import { type LogFormat, type Mode, type Option, options } from "./options.ts";
import { locationOutsideFile, type Problem, throwIfAny } from "./problems.ts";
import { ignoreProxies, prepareProcess } from "./server-process.ts";
import { type Flags, OptionReader, type SourceKind, variableWarnings } from "./sources.ts";
import { readTracing, type TracingConfig } from "./tracing.ts";

export type {
  CacheConfig,
  CommandConfig,
  DeploymentConfig,
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
export { requestLimitProblems } from "./server-process.ts";
export type { Flags } from "./sources.ts";
export type { TracingConfig } from "./tracing.ts";

/** Everything `headrace serve` needs to know; deep-frozen plain data. */
export interface Config extends ReloadableConfig {
  /** The host without brackets, also for IPv6. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly mode: Mode;
  readonly logFormat: LogFormat;
  /** Comes before `logs.level`; undefined: as that says. */
  readonly logLevel: LogLevel | undefined;
  /** Absolute. */
  readonly dataDir: string;
  readonly backupBeforeUpgrade: boolean;
  /** An origin without `/v1` and without a slash at its end; always there in production. */
  readonly publicUrl: string | undefined;
  /** Addresses and CIDR ranges. */
  readonly trustedProxies: readonly string[];
  /** Names and addresses without port and brackets. */
  readonly allowedHosts: readonly string[];
  /** Each 32 bytes as 64 hex digits, the one in use first: secrets. Undefined: what is in the data directory. */
  readonly secretsHex: readonly string[] | undefined;
  /** A secret. Undefined: SQLite in the data directory. */
  readonly databaseUrl: string | undefined;
  /** A secret. Undefined: counters in memory. */
  readonly redisUrl: string | undefined;
  /** A secret: who shows it may read the metrics. */
  readonly metricsToken: string | undefined;
  /** An origin without a slash at its end, where other replicas reach this one. */
  readonly advertiseUrl: string | undefined;
  /** Processes that serve requests for models; 1: this one alone, which has all the rest as well. */
  readonly workers: number;
  /** Seconds for which a server that stops goes on answering while it is not ready. */
  readonly lameDuckSeconds: number;
  readonly discoverLocal: boolean;
  /** Whether webhooks may post to this machine; in development alone. */
  readonly webhookLoopback: boolean;
  /** Undefined: nothing is traced. */
  readonly tracing: TracingConfig | undefined;
  /** Undefined: no mail is sent. */
  readonly mail: MailConfig | undefined;
  /** Undefined: none. */
  readonly sso: SsoConfig | undefined;
  readonly oauth: OAuthConfig;
  readonly files: FilesConfig;
  readonly cache: CacheConfig;
  /** The built-in engine; undefined figures are chosen per model. */
  readonly engine: {
    /** Whether to serve the demo model that ships with Headrace. */
    readonly demo: boolean;
    /** Absolute paths of GGUF files. */
    readonly models: readonly string[];
    /** Tokens. */
    readonly context: number | undefined;
    readonly parallel: number | undefined;
    readonly threads: number | undefined;
    /** What models may have. */
    readonly memory: MemoryConfig;
    /** Commands that serve models. */
    readonly commands: readonly CommandConfig[];
    /** Model files that another program runs. */
    readonly files: readonly ModelFileConfig[];
  };
  readonly file: {
    /** Absolute; what to watch for a reload, even where no file exists yet. */
    readonly path: string;
    readonly found: boolean;
    /** Whether there is no file, or one that says nothing. */
    readonly isEmpty: boolean;
    /** The keys that it set at start and that only a restart can change. */
    readonly startup: StartupKeys;
  };
}

export interface MailConfig {
  /** `smtp://` or `smtps://`; a secret where it holds a password. */
  readonly url: string;
  readonly from: string;
}

/** A configuration file on its own, as a reload reads it. */
export interface ConfigFile extends ReloadableConfig {
  readonly path: string;
  readonly isEmpty: boolean;
  readonly startup: StartupKeys;
}

export interface ConfigInputs {
  /** Commander's `opts()`. */
  flags?: Flags;
  env?: Env;
  cwd?: string;
}

/** The whole configuration. Rejects with a ConfigError that holds every problem found. */
export async function loadConfig(inputs: ConfigInputs = {}): Promise<Config> {
  const { flags = {}, env = process.env, cwd = process.cwd() } = inputs;
  const file = await findConfigFile(flags, env, cwd);
  const reader = new OptionReader({ flags, env, file: file.yaml });
  const absolute = (path: string, from: SourceKind) =>
    resolvePath(path, from === "file" ? dirname(file.path) : cwd, env);
  const host = reader.take(options.host);
  const mode = reader.take(options.mode);
  const publicUrl = reader.take(options.publicUrl);
  // Nobody knows what an unreadable file would have said of mode and public URL.
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
  const warnings = [
    ...[...file.warnings, ...variableWarnings(env)],
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
    ...reloadableConfig(file.data, warnings),
    file: {
      ...{ path: file.path, found: file.yaml !== undefined, startup: startupKeys(file.data) },
      isEmpty: file.yaml?.isEmpty ?? true,
    },
  });
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
 * A server without other replicas has nobody who could take over meanwhile; and Ctrl-C at a terminal is meant at once.
 */
function defaultLameDuckSeconds({ mode, databaseUrl }: Pick<Config, "mode" | "databaseUrl">): number {
  return mode === "production" && databaseUrl !== undefined ? 5 : 0;
}

/** Settings that several processes share have to be complete, and readable to all of them. */
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

/** Elsewhere than on Linux the kernel does not spread connections over processes. */
function readWorkers(reader: OptionReader): number {
  const { value, location } = reader.take(options.workers);
  const workers = value === "auto" ? (isLinux ? availableParallelism() : 1) : value;
  if (workers === 1 || isLinux) return workers;
  reader.problems.push({ ...location, message: "must be 1 on this system, or auto", fix: "Leave it out." });
  return 1;
}

const isLinux = process.platform === "linux";

/** A server that others reach must not be made to post to what only this machine reaches. */
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
 * The configuration file on its own, for a reload: `path` is `Config.file.path`. Rejects with a ConfigError when the
 * file is missing or wrong, so that the running configuration can stay.
 */
export async function readConfigFile(inputs: { path: string; env?: Env; cwd?: string }): Promise<ConfigFile> {
  const { path, env = process.env, cwd = process.cwd() } = inputs;
  const file = await openFile({ path, env, cwd, namedAt: locationOutsideFile("") });
  throwIfAny(file.problems);
  const isEmpty = file.yaml?.isEmpty ?? true;
  return deepFreeze({ path, isEmpty, ...reloadableConfig(file.data, file.warnings), startup: startupKeys(file.data) });
}

/** Keys of the file, e.g. `port`, that changed since the start and need a restart to take effect. */
export function keysThatNeedRestart(running: Config, changed: ConfigFile): string[] {
  return changedKeys(running.file.startup, changed.startup);
}

/**
 * The data directory alone, absolute, for commands other than `serve`. Of the file only `data_dir` must be right: a
 * variable that only the server has does not stop them. Rejects with a ConfigError.
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

/** The address of the records, for commands beside a server; undefined: in the data directory. Throws a ConfigError. */
export function loadDatabaseUrl(env: Env = process.env): string | undefined {
  return fromVariable(options.databaseUrl, env);
}

/** Likewise, where browsers reach the server, without a slash at its end; undefined where it is not configured. */
export async function loadPublicUrl(inputs: ConfigInputs = {}): Promise<string | undefined> {
  const { flags = {}, env = process.env, cwd = process.cwd() } = inputs;
  const file = await findConfigFile(flags, env, cwd);
  const reader = new OptionReader({ flags, env, file: file.yaml });
  const { value } = reader.take(options.publicUrl);
  throwIfAny(reader.problems);
  return trimmed(value);
}

/** Likewise, where limits are counted for all replicas. */
export function loadRedisUrl(env: Env = process.env): string | undefined {
  return fromVariable(options.redisUrl, env);
}

/** HEADRACE_SECRET, each as 64 hex digits, for commands on the server's own files; undefined where unset. Throws a ConfigError. */
export function loadSecretsHex(env: Env = process.env): readonly string[] | undefined {
  const secret = fromVariable(options.secret, env);
  return secret === undefined ? undefined : decodeSecrets(secret);
}

function fromVariable(option: Option<z.ZodString, undefined>, env: Env): string | undefined {
  const reader = new OptionReader({ flags: {}, env, file: undefined });
  const { value } = reader.take(option);
  throwIfAny(reader.problems);
  return value;
}

/** The source from which `headrace pull` fetches: HF_ENDPOINT (a mirror) and HF_TOKEN. Throws a ConfigError. */
export function loadPullSource(env: Env = process.env): PullSource {
  const { source, problems } = readPullSource(env);
  throwIfAny(problems);
  return Object.freeze(source);
}

/** Checks and prepares this process for serving; throws a ConfigError. See `config/server-process.ts`. */
export function prepareServerProcess(): void {
  prepareProcess(process.env);
}

/** Makes this process connect as the server does: not through a proxy of the environment. */
export function connectDirectly(): void {
  ignoreProxies(process.env);
}

/**
 * Whether this process ends with the one that started it: with a launcher in `bin/` that waits for it, or with npm, which
 * ends at a signal without a word to what the launcher has become.
 */
export function endsWithParent(): boolean {
  const launchedBy = process.env["LAUNCHED_BY"];
  return launchedBy === "headrace" || launchedBy === "npm";
}

/** The environment for commands other than `serve`, which hand it on to what reads it. */
export function processEnvironment(): Readonly<Record<string, string | undefined>> {
  return process.env;
}

/** Freezes plain data through and through; what is frozen already is not entered again, so shared parts do no harm. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const inner of Object.values(value)) deepFreeze(inner);
  return value;
}
