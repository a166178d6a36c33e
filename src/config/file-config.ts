// The values that the server uses from headrace.yaml, under the code's names; plain data without engines or stores.
import type { LogLevel, RequestLogSettings } from "../base/log.ts";
import { trimSlashes } from "../base/text/http-url.ts";
import type { Tier } from "../domain/account.ts";
import { quotaRuleOf } from "../domain/limits/quota-rules.ts";
import type { ModelPolicies } from "../domain/models/policies/model-policies.ts";
import { policiesFromWire } from "../domain/models/policies/policy-text.ts";
import type { Price } from "../domain/models/price.ts";
import { priceFromWire } from "../domain/models/price-text.ts";
import type { McpServer } from "../domain/tools/mcp-server.ts";
import type { TagSettings } from "../domain/usage/request-tags.ts";
import type { RetentionSettings } from "../domain/usage/retention.ts";
import { byteSize, splitWords } from "./command-text.ts";
import { type FileData, reloadableKeys, retentionDefaults } from "./file-schema.ts";
import { valueAt } from "./paths.ts";
import { type FeatureSettings, featureSettings } from "./sections/feature-sections.ts";
import { mcpServerOf } from "./sections/tool-schema.ts";

type Camel<Key> = Key extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Key;

/** Renames a mapping's members for the code, `api_key` to `apiKey`; file-schema.ts documents each. */
type InCode<Mapping> = { readonly [Key in keyof Mapping as Camel<Key>]-?: Mapping[Key] };

export type UpstreamConfig = InCode<FileData["upstreams"][number]>;
type FileModel = FileData["models"][number];
/** A deployment. The upstream is one of the file, or `builtInEngineName`. */
export type DeploymentConfig = InCode<FileModel["deployments"][number]> & { readonly model: string };
/** A declared model. Without deployments it runs on every upstream that lists its id. The best fallback comes first. */
export type ModelConfig = InCode<Omit<FileModel, "deployments" | "price" | "policies">> & {
  readonly price: Price | undefined;
  readonly deployments: readonly DeploymentConfig[];
  /** The model's policies; undefined if all are off. */
  readonly policies: ModelPolicies | undefined;
};
export type ToolsConfig = Omit<InCode<FileData["tools"]>, "servers"> & { readonly servers: readonly McpServer[] };
/** The response cache: its store and size. */
export type CacheConfig = InCode<FileData["cache"]>;
type FileCommand = NonNullable<NonNullable<FileData["engine"]>["commands"]>[number];
type FileSizes = FileCommand["asleep_gpu"];
/** Sizes in bytes of each GPU by its index. */
type Sizes = Readonly<Record<string, number>>;
/** A model file that another program than the built-in engine runs. */
export interface ModelFileConfig {
  readonly model: string;
  readonly program: "llama-server";
  /** The absolute path of the projector. */
  readonly projector: string | undefined;
  /** The id of the draft model for speculative decoding. */
  readonly draft: string | undefined;
  /** Further arguments of the program. */
  readonly more: readonly string[];
}

/** A command with an absolute directory, and its command line split into words. */
export type CommandConfig = Omit<InCode<FileCommand>, "command" | "env" | "memory" | "asleepGpu"> & {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly memory: { readonly ram: number; readonly gpu: Sizes } | undefined;
  readonly asleepGpu: Sizes | undefined;
};
/** The memory budget in bytes; undefined means as much as this machine has. */
export interface MemoryConfig {
  readonly ram: number | undefined;
  readonly gpu: Sizes | undefined;
}
/**
 * Single sign-on. Without a secret the server is a public client; without an account, people of the allowed domains
 * join the first account.
 */
export type SsoConfig = InCode<Omit<NonNullable<FileData["sso"]>, "account">> & {
  readonly accountId: string | undefined;
};

/** The kinds of OAuth clients that are allowed without registration by an account. */
export type OAuthConfig = InCode<FileData["oauth"]>;

/** The part of the configuration that a running server takes over from a changed file. */
export interface ReloadableConfig extends FeatureSettings {
  readonly upstreams: readonly UpstreamConfig[];
  readonly models: readonly ModelConfig[];
  readonly tools: ToolsConfig;
  readonly tiers: readonly Tier[];
  readonly limits: InCode<FileData["limits"]>;
  readonly tags: TagSettings;
  /** The days for which chats are stored; 0 means never. */
  readonly chatRetentionDays: number;
  /** The most bytes of stored chats, responses and conversations of one account. */
  readonly chatAccountBytes: number;
  readonly batches: InCode<FileData["batches"]>;
  readonly retention: RetentionSettings;
  /** Exact origins, or `*` alone. */
  readonly cors: { readonly origins: readonly string[] };
  readonly logs: RequestLogSettings & { readonly level: LogLevel };
  /** Warnings for the log and the terminal: valid settings that are probably a mistake. */
  readonly warnings: readonly string[];
}

/** Start-up keys that the file sets, e.g. `engine.context`, with their values. */
export type StartupKeys = Readonly<Record<string, unknown>>;

export function reloadableConfig(data: FileData, warnings: readonly string[]): ReloadableConfig {
  return {
    upstreams: data.upstreams.map((upstream) => ({ ...inCode(upstream), url: trimSlashes(upstream.url) })),
    models: data.models.map(({ price, policies, ...model }) => ({
      ...inCode(model),
      price: price && priceFromWire(price),
      policies: policies && policiesFromWire(policies),
      deployments: model.deployments.map((place) => ({ ...inCode(place), model: place.model ?? model.id })),
    })),
    ...featureSettings(data),
    tools: { ...inCode(data.tools), servers: data.tools.servers.map(mcpServerOf) },
    tiers: data.tiers.map((tier) => ({ ...inCode(tier), quotas: tier.quotas.map(quotaRuleOf) })),
    // The memory limits must admit a valid body of the largest size together with its answer.
    limits: {
      ...inCode(data.limits),
      heldBytes: Math.max(data.limits.held_bytes, 4 * data.limits.body_bytes),
      formDiskBytes: Math.max(data.limits.form_disk_bytes, data.limits.form_bytes),
    },
    tags: { metadata: data.tags.metadata, user: data.tags.user, maxADay: data.tags.most_a_day },
    chatRetentionDays: data.stored_chats.retention_days,
    chatAccountBytes: data.stored_chats.account_bytes,
    batches: inCode(data.batches),
    retention: retentionSettings(data.retention),
    cors: { origins: data.cors.origins },
    logs: {
      level: data.logs.level,
      sample: data.logs.sample,
      slowMs: (data.logs.slow_seconds ?? Number.POSITIVE_INFINITY) * 1000,
    },
    warnings,
  };
}

/** Refused requests are kept for a short time, because they may come as a flood, and each may be a row. */
const refusedRequestsDays = 30;

function retentionSettings(given: FileData["retention"]): RetentionSettings {
  const setting = (days: number | null | undefined, usual: number | null) => ({
    days: days === undefined ? usual : days,
    isDefault: days === undefined,
  });
  const requests = setting(given.requests_days, retentionDefaults.requests);
  const refusals = setting(given.refusals_days, retentionDefaults.refusals);
  const refusedDays = Math.min(refusedRequestsDays, ...[requests, refusals].flatMap(({ days }) => days ?? []));
  return {
    requests,
    hourly_usage: setting(given.hourly_usage_days, retentionDefaults.hourly_usage),
    refusals,
    refused_requests: { days: refusedDays, isDefault: false },
    audit: setting(given.audit_days, retentionDefaults.audit),
  };
}

export function ssoConfig({ sso }: FileData): SsoConfig | undefined {
  if (!sso) return undefined;
  const { account, ...others } = sso;
  return { ...inCode(others), accountId: account };
}

export function oauthConfig({ oauth }: FileData): OAuthConfig {
  return inCode(oauth);
}

/** Returns the commands. `absolute` makes a path of the file absolute. */
export function commandConfigs({ engine }: FileData, absolute: (path: string) => string): CommandConfig[] {
  return (engine?.commands ?? []).map(({ command, env = {}, memory, asleep_gpu, ...others }) => {
    const { directory, ...settings } = inCode(others);
    return {
      ...settings,
      env,
      command: typeof command === "string" ? (splitWords(command) ?? []) : command,
      directory: directory === undefined ? undefined : absolute(directory),
      memory: memory && { ram: byteSize(memory.ram), gpu: bytesOf(memory.gpu) ?? {} },
      asleepGpu: bytesOf(asleep_gpu),
    };
  });
}

export function modelFileConfigs({ engine }: FileData, absolute: (path: string) => string): ModelFileConfig[] {
  return (engine?.files ?? []).map(({ model, engine: program, projector, draft, arguments: more }) => ({
    ...{ model, program, draft },
    projector: projector === undefined ? undefined : absolute(projector),
    more: more === undefined ? [] : (splitWords(more) ?? []),
  }));
}

/** The storage of files: its place and size. */
export interface FilesConfig extends Omit<InCode<FileData["files"]>, "directory" | "s3"> {
  /** The absolute path; undefined means in the data directory. */
  readonly directory: string | undefined;
  readonly s3: InCode<NonNullable<FileData["files"]["s3"]>> | undefined;
}

/** Returns the settings of files. `absolute` makes a path of the file absolute. */
export function filesConfig({ files }: FileData, absolute: (path: string) => string): FilesConfig {
  const { directory, s3, ...bounds } = files;
  return {
    ...inCode(bounds),
    directory: directory === undefined ? undefined : absolute(directory),
    s3: s3 && inCode(s3),
  };
}

export function cacheConfig({ cache }: FileData): CacheConfig {
  return inCode(cache);
}

export function memoryConfig({ engine }: FileData): MemoryConfig {
  const { ram, gpu } = engine?.memory ?? {};
  return { ram: ram === undefined ? undefined : byteSize(ram), gpu: bytesOf(gpu) };
}

function bytesOf(sizes: FileSizes): Sizes | undefined {
  return sizes && Object.fromEntries(Object.entries(sizes).map(([index, size]) => [index, byteSize(size)]));
}

function inCode<Mapping extends object>(mapping: Mapping): InCode<Mapping> {
  const renamed = Object.entries(mapping).map(([key, value]) => [camel(key), value]);
  return Object.fromEntries(renamed) as InCode<Mapping>;
}

function camel(key: string): string {
  return key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

export function startupKeys(data: FileData): StartupKeys {
  const keys: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(data)) {
    if (reloadableKeys.includes(key)) continue;
    if (key !== "engine") keys[key] = value;
    else for (const [inner, setting] of Object.entries(data.engine ?? {})) keys[`engine.${inner}`] = setting;
  }
  return keys;
}

/** Returns the start-up keys whose value differs; a reload cannot apply these. */
export function changedKeys(before: StartupKeys, after: StartupKeys): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const text = (keys: StartupKeys, name: string) => JSON.stringify(valueAt(keys, [name]));
  return [...names].filter((name) => text(before, name) !== text(after, name)).sort();
}
