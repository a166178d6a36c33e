// The values of headrace.yaml as the server's code uses them: plain data, with names in camel case.
import type { LogLevel, RequestLogSettings } from "../base/log.ts";
import { trimSlashes } from "../base/text/http-url.ts";
import type { Tier } from "../domain/account.ts";
import type { ExportedKind } from "../domain/exports.ts";
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

/**
 * Converts the names of a mapping to camel case: `api_key` to `apiKey`. The members are documented in file-schema.ts.
 */
type InCode<Mapping> = { readonly [Key in keyof Mapping as Camel<Key>]-?: Mapping[Key] };

export type UpstreamConfig = InCode<FileData["upstreams"][number]>;
type FileModel = FileData["models"][number];
/** A deployment of a model. Its upstream is one of the file's, or `builtInEngineName`. */
export type DeploymentConfig = InCode<FileModel["deployments"][number]> & { readonly model: string };
/**
 * A declared model. If it has no deployments, it runs on every upstream that lists its id. Fallbacks are in order of
 * preference.
 */
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
/** Bytes for each GPU, by the GPU's index. */
type Sizes = Readonly<Record<string, number>>;
/** A model file that another program runs in place of the built-in engine. */
export interface ModelFileConfig {
  readonly model: string;
  readonly program: "llama-server";
  /** The absolute path of the multimodal projector. */
  readonly projector: string | undefined;
  /** The id of the draft model for speculative decoding. */
  readonly draft: string | undefined;
  /** Further command line arguments for the program. */
  readonly more: readonly string[];
}

/** A command that serves models, with an absolute directory. Its command line is split into words. */
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
 * Single sign-on. Without a client secret, the server is a public client. Without an account, people of the allowed
 * domains join the first account.
 */
export type SsoConfig = InCode<Omit<NonNullable<FileData["sso"]>, "account">> & {
  readonly accountId: string | undefined;
};

/** The kinds of OAuth clients that are allowed although no account registered them. */
export type OAuthConfig = InCode<FileData["oauth"]>;

/** The settings that a running server takes over when the file changes. */
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
  /** Allowed origins, compared exactly, or `*` alone. */
  readonly cors: { readonly origins: readonly string[] };
  readonly logs: RequestLogSettings & { readonly level: LogLevel };
  /** Warnings about settings that are valid but probably a mistake. */
  readonly warnings: readonly string[];
}

/** The start-up keys that the file sets, such as `engine.context`, with their values. */
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
    // The memory limits must have room for the largest valid body and its answer.
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

/**
 * Days to keep refused requests. They may come as a flood, and each may be a row, so they are kept for a short time.
 */
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

/** Returns the commands. `absolute` turns a path of the file into an absolute path. */
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

/** The location, the size limits and the retention of stored files. */
export interface FilesConfig extends Omit<InCode<FileData["files"]>, "directory" | "s3"> {
  /** The absolute path of the folder. Undefined means a folder in the data directory. */
  readonly directory: string | undefined;
  readonly s3: InCode<NonNullable<FileData["files"]["s3"]>> | undefined;
}

/** Returns the settings for stored files. `absolute` turns a path of the file into an absolute path. */
export function filesConfig({ files }: FileData, absolute: (path: string) => string): FilesConfig {
  const { directory, s3, ...bounds } = files;
  return {
    ...inCode(bounds),
    directory: directory === undefined ? undefined : absolute(directory),
    s3: s3 && inCode(s3),
  };
}

/** The receivers of audit events, requests and metrics. */
export interface ExportConfig {
  readonly records: readonly ExportedKind[];
  readonly otlp: InCode<NonNullable<FileExport["otlp"]>> | undefined;
  readonly s3: InCode<NonNullable<FileExport["s3"]>> | undefined;
}

type FileExport = NonNullable<FileData["export"]>;

export function exportConfig({ export: section }: FileData): ExportConfig | undefined {
  if (!section?.otlp && !section?.s3) return undefined;
  const { records, otlp, s3 } = section;
  return {
    records,
    otlp: otlp && { ...inCode(otlp), endpoint: trimSlashes(otlp.endpoint) },
    s3: s3 && inCode(s3),
  };
}

/** Decides whether actions are refused that cannot be recorded in the audit log. */
export type AuditConfig = InCode<FileData["audit"]>;

export function auditConfig({ audit }: FileData): AuditConfig {
  return inCode(audit);
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

/** Returns the start-up keys whose values differ. A reload cannot apply them. */
export function changedKeys(before: StartupKeys, after: StartupKeys): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const text = (keys: StartupKeys, name: string) => JSON.stringify(valueAt(keys, [name]));
  return [...names].filter((name) => text(before, name) !== text(after, name)).sort();
}
