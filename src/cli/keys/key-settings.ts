// Command line options for the settings of a key, and the API fields that they become.
import { InvalidArgumentError } from "commander";
import { nearest } from "../../base/text/nearest.ts";
import { amountText, type ByName, byName, byWire, type KeyAmount, keyAmounts } from "../../domain/limits/amounts.ts";
import type { GivenQuotaRule } from "../../domain/limits/quota-rules.ts";
import { type ResponseCache, responseCaches } from "../../domain/models/policies/cache.ts";
import { type Priority, priorities } from "../../domain/models/policies/priority.ts";
import { accountScopes, defaultScopes, type Scope, scopeMeanings, scopes } from "../../domain/scope.ts";
import { parseDate, parseSpan, parseTime } from "../terminal/figures.ts";
import { parseQuotas } from "./quota-view.ts";

/**
 * The given settings; undefined for a setting that was not given. The text "none" clears a setting, because Commander
 * turns null into an empty text.
 */
export interface KeySettings extends Partial<ByName<KeyAmount, number | None>> {
  scopes?: string[];
  expires?: Expiry | None;
  allowedIps?: string[];
  rateLimit?: number | None;
  rateLimitWindow?: number;
  quotas?: GivenQuotaRule[] | None;
  models?: string[] | None;
  tools?: string[] | None;
  neverLeaves?: boolean;
  priority?: Priority | None;
  responseCache?: ResponseCache | None;
  tags?: string[];
  note?: string;
}

type None = "none";

/** The expiry of a key: a time span from the request on, or a point in time. */
export type Expiry = { inSeconds: number } | { at: number };

/** The section of `--help` about scopes. */
export const scopesHelp = `Scopes:
${accountScopes.map((scope) => `  ${scope.padEnd(12)}  ${scopeMeanings[scope]}`).join("\n")}`;

/** The syntax of lists of tools. */
export const toolsForm = "server or server/tool, or a prefix ending in *, separated by commas; none, or all";

/**
 * Returns the options for a key's settings. `clearable` is true if the key exists already, so that `none` clears a
 * setting.
 */
export function keySettings({ clearable }: { clearable: boolean }) {
  const scopesDefault = clearable ? "" : ` (default: ${defaultScopes.join(",")})`;
  const none = clearable ? ", or none" : "";
  return {
    scopes: ["--scopes <scopes>", `scopes, separated by commas${scopesDefault}`, parseScopes],
    expires: [
      "--expires <when>",
      "when it expires: a span such as 12h or 30d, the end of a date, a time, or never",
      parseExpiry,
    ],
    allowedIps: [
      "--allowed-ips <addresses>",
      `client addresses and CIDR ranges that may use it, separated by commas${none}`,
      (text: string) => (text === "none" ? [] : parseNames(text)),
    ],
    rateLimit: ["--rate-limit <number>", `its own rate limit, in requests per window${none}`, orNone(parseCount)],
    rateLimitWindow: [
      "--rate-limit-window <seconds>",
      "window of the rate limit, such as 60 or 1h (the server's default: 60)",
      parseSeconds,
    ],
    quotas: [
      "--quotas <quotas>",
      `quotas per window, such as "200 requests per 5h"${none}`,
      (text: string) => (text === "none" ? "none" : parseQuotas(text)),
    ],
    models: [
      "--models <ids>",
      `models it may use: ids or prefixes such as "gpt-*", separated by commas${clearable ? ", or all" : ""}`,
      (text: string) => (text === "all" ? "none" : parseNames(text)),
    ],
    tools: ["--tools <names>", `tools it may use: ${toolsForm}`, parseTools],
    neverLeaves: ["--never-leaves <yes or no>", "send its requests only to local servers", parseYesOrNo],
    priority: [
      "--priority <priority>",
      `maximum priority of its requests: ${priorities.join(", ")}${clearable ? ", or tier for its tier's" : ""}`,
      (text: string) => (clearable && text === "tier" ? "none" : parsePriority(text)),
    ],
    responseCache: [
      "--response-cache <on, off or model>",
      "use the response cache: on, off, or the setting of each model",
      parseResponseCache,
    ],
    tags: [
      "--tags <tags>",
      `tags to group its usage by, separated by commas${none}`,
      (text: string) => (text === "none" ? [] : parseNames(text)),
    ],
    note: ["--note <text>", `a note${clearable ? '; "" removes it' : ""}`],
    ...byName(keyAmounts, (amount) => {
      const [value, parse] = amount.unit === "USD" ? (["usd", parseUsd] as const) : (["number", parseAmount] as const);
      const flag = `--${amount.wire.replaceAll("_", "-")} <${value}>`;
      return [flag, `${amountText(amount)}${none}`, orNone(parse)] as const;
    }),
  } as const;
}

/**
 * Returns the fields of a request that creates a key. A time span is sent unchanged, because the server's clock is
 * used.
 */
export function creationFields(settings: KeySettings): Record<string, unknown> {
  const { expires } = settings;
  const expiry =
    expires === undefined || expires === "none"
      ? {}
      : "at" in expires
        ? { expires_at: expires.at }
        : { expires_in: expires.inSeconds };
  const given = Object.entries(commonFields(settings)).filter(([, value]) => value !== null);
  return { ...Object.fromEntries(given), ...expiry };
}

/**
 * Returns the fields of a request that changes a key, with null for each setting to clear. The result is empty if no
 * option was given.
 */
export function changeFields(settings: KeySettings, nowMs: number): Record<string, unknown> {
  const { expires, rateLimit } = settings;
  const fields = commonFields(settings);
  // A window without a limit has no meaning.
  if (rateLimit === "none") fields["rate_limit_window"] = null;
  if (expires === undefined) return fields;
  if (expires === "none") return { ...fields, expires_at: null };
  return { ...fields, expires_at: "at" in expires ? expires.at : Math.floor(nowMs / 1000) + expires.inSeconds };
}

function commonFields(settings: KeySettings): Record<string, unknown> {
  const all = {
    scopes: settings.scopes,
    allowed_ips: settings.allowedIps,
    rate_limit: settings.rateLimit,
    rate_limit_window: settings.rateLimitWindow,
    ...byWire(keyAmounts, ({ name }) => settings[name]),
    quotas: settings.quotas,
    models: settings.models,
    tools: settings.tools,
    never_leaves: settings.neverLeaves,
    priority: settings.priority,
    response_cache: settings.responseCache,
    tags: settings.tags,
    note: settings.note,
  };
  const given = Object.entries(all).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, value === "none" ? null : value]));
}

export function parseNames(text: string): string[] {
  const names = text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  if (names.length === 0) throw new InvalidArgumentError("Name at least one, separated by commas.");
  return names;
}

export function parseScopes(text: string): Scope[] {
  return parseNames(text).map((name) => {
    const found = scopes.find((scope) => scope === name);
    if (found) return found;
    const meant = nearest(name, scopes);
    const guess = meant === undefined ? "" : ` Did you mean ${meant}?`;
    throw new InvalidArgumentError(`There is no such scope.${guess} Scopes are ${scopes.join(", ")}.`);
  });
}

/** Parses a list of tools. In the API, null stands for all tools and an empty list for no tool. */
export function parseTools(text: string): string[] | None {
  if (text === "all") return "none";
  return text === "none" ? [] : parseNames(text);
}

function parseYesOrNo(text: string): boolean {
  if (text === "yes" || text === "no") return text === "yes";
  throw new InvalidArgumentError("It must be yes or no.");
}

function parsePriority(text: string): Priority {
  const priority = priorities.find((one) => one === text);
  if (priority) return priority;
  throw new InvalidArgumentError(`It must be ${priorities.slice(0, -1).join(", ")} or ${priorities.at(-1)}.`);
}

function parseResponseCache(text: string): ResponseCache | None {
  if (text === "model") return "none";
  const said = responseCaches.find((one) => one === text);
  if (said) return said;
  throw new InvalidArgumentError("It must be on, off or model.");
}

/**
 * Parses the end of a key. A date alone means the end of that day in this machine's time zone, so that the key still
 * works on that day.
 */
export function parseExpiry(text: string): Expiry | None {
  if (text === "never" || text === "none") return "none";
  const inSeconds = parseSpan(text);
  if (inSeconds !== undefined && inSeconds > 0) return { inSeconds };
  const date = parseDate(text);
  if (date) return { at: Math.floor(new Date(date.year, date.month - 1, date.day + 1).getTime() / 1000) };
  const at = parseTime(text);
  if (at !== undefined) return { at };
  throw new InvalidArgumentError(
    "Give a span such as 12h, 30d or 2w, a date such as 2026-12-31, a time such as 2026-12-31T18:00, or never.",
  );
}

function orNone(parse: (text: string) => number): (text: string) => number | None {
  return (text) => (text === "none" ? "none" : parse(text));
}

export function parseCount(text: string): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (value < 1) throw new InvalidArgumentError("It must be a whole number of at least 1, without separators.");
  return value;
}

export function parseAmount(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number, without separators.");
}

export function parseSeconds(text: string): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : (parseSpan(text) ?? 0);
  if (value < 1) throw new InvalidArgumentError("It must be a number of seconds such as 60, or a span such as 1h.");
  return value;
}

export function parseUsd(text: string): number {
  if (/^\d{1,7}(\.\d{1,9})?$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be an amount in USD, such as 25 or 0.50.");
}
