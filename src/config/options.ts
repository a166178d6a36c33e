// The table of start-up options: for each option its flag, variable, key in the file, default, meaning and requirement.
import * as z from "zod";
import { logLevels } from "../base/log.ts";
import { field, oneOf, orLeftOut, type Rule, trueOrFalse, whole } from "./field.ts";
import {
  decodeSecrets,
  isAddressOrRange,
  isCollectorUrl,
  isHost,
  isOriginUrl,
  isPostgresUrl,
  isRedisUrl,
  isSender,
  isSmtpUrl,
  parseHeaderList,
} from "./formats.ts";

export const modes = ["development", "production"] as const;
export type Mode = (typeof modes)[number];

export const logFormats = ["text", "json"] as const;
export type LogFormat = (typeof logFormats)[number];

/** The conversion of text to a value. A `list` is separated by commas. A `repeated` flag is given once for each value. */
type Kind = "text" | "number" | "switch" | "list" | "repeated";

export interface Option<S extends z.ZodType = z.ZodType, D = z.output<S> | undefined> {
  schema: S;
  rule: Rule;
  kind: Kind;
  /**
   * The flag in Commander's syntax, such as `--port <number>`. Undefined for secrets, which must not appear in a
   * process list.
   */
  flag: string | undefined;
  env: string | undefined;
  /** True for a secret. The variable's name with `_FILE` appended may then name a file that contains the value. */
  isSecret: boolean;
  /** The path of keys in the file. */
  file: readonly string[] | undefined;
  default: D;
  /** The default as the help and the reference page show it. */
  defaultText: string;
  /** The documentation of the flag, if it differs from the documentation of the value. */
  flagDoc: string | undefined;
}

interface OptionParts<S extends z.ZodType> extends Rule {
  schema: S;
  kind?: Kind;
  flag?: string;
  env?: string;
  isSecret?: boolean;
  file?: readonly string[];
  defaultText?: string;
  flagDoc?: string;
}

function option<S extends z.ZodType>(parts: OptionParts<S> & { default: z.output<S> }): Option<S, z.output<S>>;
function option<S extends z.ZodType>(parts: OptionParts<S>): Option<S, undefined>;
function option<S extends z.ZodType>(parts: OptionParts<S> & { default?: z.output<S> }): Option<S> {
  const {
    schema,
    kind = kindOf(schema),
    flag,
    env,
    isSecret = false,
    file,
    default: fallback,
    defaultText,
    flagDoc,
    ...rule
  } = parts;
  const shown = Array.isArray(fallback) ? "none" : String(fallback ?? "none");
  return {
    ...{ schema: field(schema, rule), rule, kind, flag, env, isSecret, file, flagDoc },
    ...{ default: fallback, defaultText: defaultText ?? shown },
  };
}

function kindOf(schema: z.ZodType): Kind {
  if (schema instanceof z.ZodNumber) return "number";
  if (schema instanceof z.ZodBoolean) return "switch";
  return schema instanceof z.ZodArray ? "list" : "text";
}

const path = () => z.string().min(1);

export const options = {
  host: option({
    schema: z.string().refine(isHost),
    flag: "--host <address>",
    env: "HEADRACE_HOST",
    file: ["host"],
    default: "127.0.0.1",
    doc: "Address to listen on. An address that other machines reach needs production mode.",
    must: "an IP address or a host name",
    fix: "Give an address such as 127.0.0.1, ::1 or 0.0.0.0, without scheme and port.",
  }),
  port: option({
    ...whole([0, 65_535], 7545),
    flag: "--port <number>",
    env: "HEADRACE_PORT",
    file: ["port"],
    default: 7545,
    doc: "Port to listen on. 0 picks a free port, which the server prints.",
    fix: "Give a port such as 7545, or 0 for any free port.",
  }),
  dataDir: option({
    schema: path(),
    flag: "--data-dir <path>",
    env: "HEADRACE_DATA_DIR",
    file: ["data_dir"],
    defaultText: "`$XDG_DATA_HOME/headrace`, else `~/.local/share/headrace`",
    doc: "Directory of the database, the generated secret, `credentials.json` and pulled models.",
    must: "the path of a directory",
    fix: "Give a path such as ~/headrace-data.",
  }),
  backupBeforeUpgrade: option({
    ...trueOrFalse(),
    flag: "--no-backup-before-upgrade",
    flagDoc: "Upgrade the SQLite database without a backup.",
    env: "HEADRACE_BACKUP_BEFORE_UPGRADE",
    file: ["backup_before_upgrade"],
    default: true,
    doc: "Keep a copy of the SQLite database in `backups/` of the data directory before a new version changes its schema.",
  }),
  config: option({
    schema: path(),
    flag: "--config <path>",
    env: "HEADRACE_CONFIG",
    defaultText: "`headrace.yaml` in the working directory, if there is one",
    doc: "The configuration file.",
    must: "the path of a file",
    fix: "Give the path of a YAML file.",
  }),
  mode: option({
    ...oneOf(modes),
    flag: "--mode <mode>",
    env: "HEADRACE_MODE",
    file: ["mode"],
    default: "development",
    doc:
      "`development` is for this machine only. `production` refuses sk_dev_ keys and needs a public URL. In production, local " +
      "model servers that are found are printed but not served.",
  }),
  logFormat: option({
    ...oneOf(logFormats),
    flag: "--log-format <format>",
    env: "HEADRACE_LOG_FORMAT",
    file: ["log_format"],
    default: "text",
    doc: "`text` for people, `json` for one JSON object per line.",
  }),
  logLevel: option({
    ...oneOf(logLevels),
    flag: "--log-level <level>",
    env: "HEADRACE_LOG_LEVEL",
    defaultText: "`logs.level` of the file",
    doc: "Lowest level that is logged: `info`, `warn` or `error`.",
  }),
  publicUrl: option({
    schema: z.string().refine(isOriginUrl),
    flag: "--public-url <url>",
    env: "HEADRACE_PUBLIC_URL",
    file: ["public_url"],
    defaultText: "none; required in production",
    doc: "The URL that clients use, without `/v1`. Links, issuer and audience use it, never a Host header.",
    must: "an http:// or https:// URL of host and port alone, without user, path, query or fragment",
    fix: "Give the address that clients use, such as https://ai.example.com, without /v1.",
    quiet: true,
  }),
  trustedProxies: option({
    schema: z.array(
      field(z.string().refine(isAddressOrRange), {
        doc: "An address or CIDR range.",
        must: "an IPv4 or IPv6 address, or a CIDR range",
        fix: "Give entries such as 10.0.0.0/8, 192.0.2.7 or fd00::/8.",
      }),
    ),
    flag: "--trusted-proxies <list>",
    env: "HEADRACE_TRUSTED_PROXIES",
    file: ["trusted_proxies"],
    default: [],
    doc: "Proxies whose `X-Forwarded-For` is trusted. Separate them by commas in the flag and the variable.",
    must: "a list of addresses and CIDR ranges",
    fix: "Give entries such as 10.0.0.0/8 or fd00::/8.",
  }),
  allowedHosts: option({
    schema: z.array(
      field(z.string().refine(isHost), {
        doc: "A host name or IP address, without scheme and port.",
        must: "a host name or an IP address",
        fix: "Give entries such as devbox.example.com or 192.0.2.7.",
      }),
    ),
    flag: "--allowed-hosts <list>",
    env: "HEADRACE_ALLOWED_HOSTS",
    file: ["allowed_hosts"],
    default: [],
    doc:
      "Further names of this machine, in development mode. A request from this machine to one of them is treated like one to " +
      "`localhost`. Do not list the name of a tunnel or proxy. Separate them by commas in the flag and the variable.",
    must: "a list of host names and IP addresses",
    fix: "Give entries such as devbox.example.com or 192.0.2.7.",
  }),
  secret: option({
    schema: z.string().refine((text) => decodeSecrets(text) !== undefined),
    env: "HEADRACE_SECRET",
    isSecret: true,
    defaultText: "generated once in the data directory",
    doc:
      "The secret for key digests and encrypted values: 32 random bytes as hex or base64. A variable only. To rotate it, " +
      "give several, separated by commas: the first is used for new values, and the others are still accepted.",
    must: "32 bytes, as 64 hex digits or 43 to 44 characters of base64 or base64url, or up to 4 of these separated by commas",
    fix: "Make one with `openssl rand -hex 32`, or unset the variable to use the one in the data directory.",
    quiet: true,
  }),
  metricsToken: option({
    schema: z.string().regex(/^[!-~]{16,256}$/),
    env: "HEADRACE_METRICS_TOKEN",
    isSecret: true,
    defaultText: "none; an operator's key reads the metrics",
    doc: "Bearer token with which a monitor reads `GET /metrics`. A variable only.",
    must: "16 to 256 visible ASCII characters without blanks",
    fix: "Make one with `openssl rand -hex 32`.",
    quiet: true,
  }),
  databaseUrl: option({
    schema: z.string().refine(isPostgresUrl),
    env: "HEADRACE_DATABASE_URL",
    isSecret: true,
    defaultText: "none; SQLite in the data directory",
    doc:
      "PostgreSQL 15 or later for all records, `postgres://user:password@host:5432/database`, with `?sslmode=require` " +
      "for TLS. Needs HEADRACE_SECRET. A variable only: it holds a password.",
    must: "a postgres:// URL of host and database, with user and password if the server needs them",
    fix: "Give a URL such as postgres://headrace:password@db.example.com:5432/headrace, with %40 for an @ in the password.",
    quiet: true,
  }),
  redisUrl: option({
    schema: z.string().refine(isRedisUrl),
    env: "HEADRACE_REDIS_URL",
    isSecret: true,
    defaultText: "none; counters in memory",
    doc:
      "Valkey or Redis 7 or later for limits that several replicas share, `redis://user:password@host:6379/0`, or " +
      "`rediss://` for TLS. Needs HEADRACE_DATABASE_URL. A variable only: it holds a password.",
    must: "a redis:// or rediss:// URL of host, and if need be port, user, password and the number of a database",
    fix: "Give a URL such as rediss://default:password@cache.example.com:6379/0.",
    quiet: true,
  }),
  workers: option({
    schema: z.union([z.literal("auto"), z.int().min(1).max(64)]),
    kind: "number",
    flag: "--workers <number>",
    env: "HEADRACE_WORKERS",
    file: ["workers"],
    default: 1,
    doc:
      "Number of processes that serve requests to upstreams; `auto`: one for each processor. With more than one, a primary " +
      "process has the rest: limits, the ledger, the dashboard, the built-in engine and nodes. Linux only.",
    must: "auto, or a whole number from 1 to 64",
    fix: "Give auto, or the number of processors that Headrace may use, such as 4.",
  }),
  lameDuckSeconds: option({
    ...whole([0, 300], 5, "seconds"),
    flag: "--lame-duck-seconds <number>",
    env: "HEADRACE_LAME_DUCK_SECONDS",
    file: ["lame_duck_seconds"],
    defaultText: "5 in production with PostgreSQL, else 0",
    doc:
      "Seconds for which a stopping server still accepts requests while `/readyz` answers 503, so that load balancers notice. " +
      "After that, open requests have 30 s to end.",
    fix: "Give a little more than the load balancer needs to notice, such as 5; 0 stops at once.",
  }),
  advertiseUrl: option({
    schema: z.string().refine(isOriginUrl),
    flag: "--advertise-url <url>",
    env: "HEADRACE_ADVERTISE_URL",
    file: ["advertise_url"],
    defaultText: "none; nodes that are connected to this replica are out of reach of the others",
    doc: "The URL at which other replicas reach this one in their network.",
    must: "an http:// or https:// URL of host and port alone, without user, path, query or fragment",
    fix: "Give an address such as http://10.0.0.5:7545.",
    quiet: true,
  }),
  smtpUrl: option({
    schema: z.string().refine(isSmtpUrl),
    env: "HEADRACE_SMTP_URL",
    isSecret: true,
    file: ["mail", "url"],
    defaultText: "none; a link is shown to the person who asks for it",
    doc:
      "The mail server: `smtps://user:password@host:465`, or `smtp://` for STARTTLS on port 587. A mail server on another " +
      "machine must offer STARTTLS. Never a flag: it holds a password.",
    must: "an smtp:// or smtps:// URL of host and port, with user and password or neither",
    fix: "Give a URL such as smtps://user:password@smtp.example.com, with %40 for an @ in user or password.",
    quiet: true,
  }),
  mailFrom: option({
    schema: z.string().refine(isSender),
    env: "HEADRACE_MAIL_FROM",
    file: ["mail", "from"],
    defaultText: "none; required with a mail server",
    doc: "Sender of the mail.",
    must: "an e-mail address, with or without a name before it",
    fix: "Give an address such as headrace@example.com or Headrace <headrace@example.com>.",
  }),
  otlpEndpoint: option({
    schema: z.string().refine(isCollectorUrl),
    env: "OTEL_EXPORTER_OTLP_ENDPOINT",
    file: ["tracing", "endpoint"],
    defaultText: "none; nothing is traced",
    doc: "Base URL of the collector for traces (OTLP over HTTP). `/v1/traces` is appended.",
    must: "an http:// or https:// URL without user, password, query or fragment",
    fix: "Give a URL such as http://127.0.0.1:4318, and any credential as a header.",
    quiet: true,
  }),
  otlpTracesEndpoint: option({
    schema: z.string().refine(isCollectorUrl),
    env: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    defaultText: "none",
    doc: "Full URL for traces, to which nothing is appended. It takes precedence over `OTEL_EXPORTER_OTLP_ENDPOINT`.",
    must: "an http:// or https:// URL without user, password, query or fragment",
    fix: "Give a URL such as http://127.0.0.1:4318/v1/traces.",
    quiet: true,
  }),
  otlpHeaders: option({
    schema: z.string().refine((text) => parseHeaderList(text) !== undefined),
    env: "OTEL_EXPORTER_OTLP_HEADERS",
    isSecret: true,
    defaultText: "none",
    doc: "Headers for the collector, `name=value` separated by commas, with %20 for a space; added to `tracing.headers`.",
    must: "pairs such as name=value, separated by commas",
    fix: "Give pairs such as authorization=Bearer%20token, in printable ASCII once decoded.",
    quiet: true,
  }),
  otelServiceName: option({
    schema: z.string().min(1).max(256),
    env: "OTEL_SERVICE_NAME",
    file: ["tracing", "service_name"],
    default: "headrace",
    doc: "Name of this service in traces.",
    must: "1 to 256 characters",
    fix: "Give a name such as headrace.",
  }),
  otelDisabled: option({
    ...trueOrFalse(),
    env: "OTEL_SDK_DISABLED",
    default: false,
    doc: "Turns tracing off, regardless of other settings.",
  }),
  discoverLocal: option({
    ...trueOrFalse(),
    flag: "--no-discover-local",
    flagDoc: "Do not look for model servers on this machine at start.",
    env: "HEADRACE_DISCOVER_LOCAL",
    file: ["discover_local"],
    default: true,
    doc: "Look for Ollama, LM Studio, vLLM and llama-server on this machine at start.",
  }),
  webhookLoopback: option({
    ...trueOrFalse(),
    env: "HEADRACE_WEBHOOK_LOOPBACK",
    file: ["webhook_loopback"],
    default: false,
    doc: "Allow webhooks to this machine, also over http. Development mode only.",
  }),
  webhookNetworks: option({
    schema: z.array(
      field(
        z.string().refine((text) => isHost(text) || isAddressOrRange(text)),
        {
          doc: "A host name, an address or a CIDR range.",
          must: "a host name, an IP address or a CIDR range",
          fix: "Give entries such as alertmanager.internal, 10.0.0.0/8 or fd00::/8.",
        },
      ),
    ),
    env: "HEADRACE_WEBHOOK_NETWORKS",
    file: ["webhook_networks"],
    default: [],
    doc: "Private hosts and networks to which operators' webhooks may post, also over http. Separate them by commas in the variable.",
    must: "a list of host names, addresses and CIDR ranges",
    fix: "Give entries such as alertmanager.internal or 10.0.0.0/8.",
  }),
  models: option({
    schema: z.array(
      field(
        path().refine((text) => !text.startsWith("hf:")),
        {
          doc: "Path of a GGUF file.",
          must: "the path of a GGUF file",
          fix: "Give the path of a file; a model on Hugging Face is first fetched with `headrace pull hf:owner/repo`.",
        },
      ),
    ),
    kind: "repeated",
    flag: "--model <path.gguf>",
    flagDoc: "Serve this GGUF file with the built-in engine; repeatable.",
    file: ["engine", "models"],
    default: [],
    doc: "GGUF files that the built-in engine serves.",
    must: "a list of paths of GGUF files",
    fix: "Give paths such as ./qwen3.gguf.",
  }),
  context: option({
    ...orLeftOut(whole([128, 10_000_000], 8192, "tokens")),
    flag: "--context <tokens>",
    file: ["engine", "context"],
    defaultText: "chosen per model",
    doc: "Context of the built-in engine per request, in tokens of prompt and completion together.",
  }),
  parallel: option({
    ...orLeftOut(whole([1, 64], 4)),
    flag: "--parallel <number>",
    file: ["engine", "parallel"],
    defaultText: "chosen per model",
    doc: "Number of requests that the built-in engine computes at once per model.",
  }),
  threads: option({
    ...orLeftOut(whole([1, 256], 1)),
    flag: "--threads <number>",
    file: ["engine", "threads"],
    defaultText: "chosen per model",
    doc: "Processor threads of the built-in engine. More are not always faster: leave one core to the gateway.",
  }),
  demo: option({
    ...trueOrFalse(),
    flag: "--no-demo",
    flagDoc: "Do not serve the tiny demo model that ships with Headrace.",
    file: ["engine", "demo"],
    default: true,
    doc: "Serve the tiny demo model that ships with Headrace.",
  }),
} as const;

/** Variables that accept a file: `NAME_FILE` names the file that contains the value of `NAME`. */
export const secretVariables: readonly string[] = Object.values(options).flatMap(({ env, isSecret }) =>
  isSecret && env ? [env] : [],
);

/**
 * Returns the name under which Commander stores a flag's value: `discoverLocal` for `--no-discover-local`, `model` for
 * `--model <path>`.
 */
export function flagAttribute(flag: string): string {
  const name = flagName(flag).replace(/^--(no-)?/, "");
  return name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns `--port` for `--port <number>`. */
export function flagName(flag: string): string {
  return flag.split(" ")[0] ?? flag;
}

export interface ServeFlag {
  /** The flag in commander's syntax. */
  syntax: string;
  description: string;
  /** True if the flag may be given several times. Its values form a list. */
  repeatable: boolean;
}

/**
 * Returns the flags of `headrace serve` in the order of its help. `loadConfig`, not Commander, applies the defaults.
 */
export function serveFlags(): ServeFlag[] {
  const flags: ServeFlag[] = [];
  for (const { flag, flagDoc, rule, kind, defaultText, env } of Object.values(options)) {
    if (flag === undefined) continue;
    const fallback = flagDoc !== undefined || defaultText === "none" ? "" : ` Default: ${defaultText}.`;
    const variable = env === undefined ? "" : ` [${env}]`;
    flags.push({
      syntax: flag,
      description: `${flagDoc ?? rule.doc}${fallback}${variable}`.replaceAll("`", ""),
      repeatable: kind === "repeated",
    });
  }
  return flags;
}
