// What the server takes from headrace.yaml, in the names of the code; plain data without engines or stores.

import type { LogLevel, RequestLogSettings } from "../base/log.ts";
import { trimSlashes } from "../base/text/http-url.ts";
import type { Tier } from "../domain/account.ts";
import type { Environment } from "../domain/api-key.ts";
import { amounts, byName } from "../domain/limits/amounts.ts";
import type { Capabilities } from "../domain/models/capabilities.ts";
import type { Price } from "../domain/models/model.ts";
import type { RetentionSettings } from "../domain/usage/retention.ts";
import { type FileData, reloadableKeys, retentionDefaults } from "./file-schema.ts";
import { valueAt } from "./paths.ts";

export interface UpstreamConfig {
  readonly name: string;
  /** Base URL without a slash at its end, e.g. `http://127.0.0.1:11434/v1`. */
  readonly url: string;
  /** A secret. */
  readonly apiKey: string | undefined;
  /** Whether the upstream is asked for its models, and they are served. */
  readonly discover: boolean;
  /** Seconds to the first byte of an answer. */
  readonly timeoutSeconds: number;
  /** Between two bytes of an answer. */
  readonly idleSeconds: number;
  /** undefined: measured. */
  readonly maxConcurrency: number | undefined;
  readonly httpClient: "own" | "fetch";
}

export interface DeploymentConfig {
  /** Name of an upstream, or `builtInEngineName`. */
  readonly upstream: string;
  /** The upstream's own id of the model. */
  readonly model: string;
  readonly weight: number;
}

export interface ModelConfig {
  readonly id: string;
  readonly capabilities: Readonly<Capabilities> | undefined;
  /** Tokens. */
  readonly context: number | undefined;
  readonly environments: readonly Environment[];
  readonly price: Readonly<Price> | undefined;
  readonly ownedBy: string | undefined;
  /** Deployments of the model, at least one. */
  readonly deployments: readonly DeploymentConfig[];
  /** Ids of models that stand in for it, best first. */
  readonly fallbacks: readonly string[];
}

/** Sign-in at an OpenID Connect provider. */
export interface SsoConfig {
  /** The name by which people know it. */
  readonly name: string;
  readonly issuer: string;
  readonly clientId: string;
  /** A secret; undefined: a public client. */
  readonly clientSecret: string | undefined;
  readonly scopes: readonly string[];
  /** Domains in lower case; empty: nobody joins uninvited. */
  readonly allowedDomains: readonly string[];
  /** The account that people of those domains join; undefined: the first. */
  readonly accountId: string | undefined;
  readonly role: "admin" | "member";
}

/** The part of the configuration that a running server takes over from a changed file. */
export interface ReloadableConfig {
  readonly upstreams: readonly UpstreamConfig[];
  readonly models: readonly ModelConfig[];
  readonly tiers: readonly Tier[];
  readonly limits: {
    readonly bodyBytes: number;
    readonly messages: number;
    readonly depth: number;
    /** Requests that may wait for one engine or model. */
    readonly queue: number;
    readonly queueSeconds: number;
    /** The most open requests of a key at the same time, in each process. */
    readonly openRequestsPerKey: number;
    /** The most bytes of requests and answers in memory at the same time, in each process. */
    readonly heldBytes: number;
  };
  /** 0: nothing is stored. */
  readonly chatRetentionDays: number;
  readonly retention: RetentionSettings;
  /** Exact origins, or `*` alone. */
  readonly cors: { readonly origins: readonly string[] };
  readonly logs: RequestLogSettings & { readonly level: LogLevel };
  /** Lines for the log and the terminal: allowed, but most likely not what was meant. */
  readonly warnings: readonly string[];
}

/** Start-up keys that the file sets, e.g. `engine.context`, with their values. */
export type StartupKeys = Readonly<Record<string, unknown>>;

export function reloadableConfig(data: FileData, warnings: readonly string[]): ReloadableConfig {
  return {
    upstreams: data.upstreams.map((upstream) => ({
      name: upstream.name,
      url: trimSlashes(upstream.url),
      apiKey: upstream.api_key,
      discover: upstream.discover,
      timeoutSeconds: upstream.timeout_seconds,
      idleSeconds: upstream.idle_seconds,
      maxConcurrency: upstream.max_concurrency,
      httpClient: upstream.http_client,
    })),
    models: data.models.map((model) => ({
      id: model.id,
      capabilities: model.capabilities,
      context: model.context,
      environments: model.environments,
      price: model.price,
      ownedBy: model.owned_by,
      deployments: model.deployments.map((deployment) => ({
        upstream: deployment.upstream,
        model: deployment.model ?? model.id,
        weight: deployment.weight,
      })),
      fallbacks: model.fallbacks,
    })),
    tiers: data.tiers.map((tier) => ({
      name: tier.name,
      ...byName(amounts, ({ wire }) => tier[wire]),
      environments: tier.environments,
    })),
    limits: {
      bodyBytes: data.limits.body_bytes,
      messages: data.limits.messages,
      depth: data.limits.depth,
      queue: data.limits.queue,
      queueSeconds: data.limits.queue_seconds,
      openRequestsPerKey: data.limits.open_requests_per_key,
      // An honest body of the largest size must pass, and its answer.
      heldBytes: Math.max(data.limits.held_bytes, 4 * data.limits.body_bytes),
    },
    chatRetentionDays: data.stored_chats.retention_days,
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

/** Each may be a row in a flood of them. */
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
  return (
    sso && {
      name: sso.name,
      issuer: sso.issuer,
      clientId: sso.client_id,
      clientSecret: sso.client_secret,
      scopes: sso.scopes,
      allowedDomains: sso.allowed_domains,
      accountId: sso.account,
      role: sso.role,
    }
  );
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

/** Start-up keys whose value differs; a reload cannot take these over. */
export function changedKeys(before: StartupKeys, after: StartupKeys): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const text = (keys: StartupKeys, name: string) => JSON.stringify(valueAt(keys, [name]));
  return [...names].filter((name) => text(before, name) !== text(after, name)).sort();
}
