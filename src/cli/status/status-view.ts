// Shows the state of a server to a person.
import { z } from "zod";
import { displayParts } from "../../domain/api-key.ts";
import { type FoundKey, shownKey } from "../keys/key-records.ts";
import { quotaFacts, shareOf, usedQuota } from "../keys/quota-view.ts";
import { formatCount, formatTimeAndRelative, formatUsd } from "../terminal/figures.ts";
import { wrapped } from "../terminal/fitted-text.ts";
import { formatFacts, printable, type Terminal } from "../terminal/terminal.ts";
import type { limitsShape } from "../usage/limits.ts";
import { rate, rateText } from "../usage/rate-view.ts";
import { type ModelQueue, queueFacts } from "./queues.ts";

const used = z.object({ limit: z.number().nullish(), used: z.number() });

export const account = z.object({
  id: z.string(),
  name: z.string(),
  tier: z.string(),
  environment: z.string(),
  rate: z.object({ requests: rate, tokens: rate }),
  quotas: z.array(usedQuota).nullish(),
  quota: z.object({ period_start: z.number(), period_end: z.number(), tokens: used, spend: used }),
});

export interface StatusReport {
  baseUrl: string;
  apiKey: string;
  keySource: string;
  /** The reason why the server does not answer. */
  unreachable?: string;
  ready: boolean;
  checks: Record<string, string>;
  version?: string;
  /** The reason why the key is refused. */
  keyRefused?: string;
  account?: { raw: unknown; read: z.infer<typeof account> };
  /** The key's limits, for a key that may not read the account. */
  limits?: { raw: unknown; read: z.infer<typeof limitsShape> };
  key?: FoundKey;
  models?: readonly string[];
  queues?: readonly ModelQueue[];
  /** The parts that could not be read, usually because a scope is missing. */
  missing: { part: string; reason: string }[];
}

type Facts = [name: string, value: string][];

const shownModels = 5;

export function printStatus(terminal: Terminal, report: StatusReport, nowMs: number): void {
  const { bold, dim, green, red, yellow } = terminal.out;
  const isWhole = Object.values(report.checks).every((check) => check === "ok");
  const ready = report.ready
    ? isWhole
      ? green("ready")
      : yellow("ready, with less than it should have")
    : red("not ready");
  const state = report.unreachable !== undefined ? red("not reachable") : ready;
  const version = report.version === undefined ? "Headrace" : `Headrace ${printable(report.version)}`;
  terminal.print(`${bold(version)}  ${printable(report.baseUrl)}  ${state}`);
  if (report.unreachable !== undefined) return;
  const facts = [...serverFacts(report), ...keyFacts(report, nowMs), ...accountFacts(report, terminal, nowMs)];
  terminal.print(`\n${formatFacts(facts, terminal.out)}`);
  if (report.missing.length === 0) return;
  terminal.print("");
  for (const { part, reason } of report.missing) {
    const text = `Not shown: ${part} (${printable(reason).replace(/\.$/, "")}).`;
    const width = (terminal.out.columns ?? Number.POSITIVE_INFINITY) - 2;
    for (const line of wrapped(text, width)) terminal.print(dim(`  ${line}`));
  }
}

function serverFacts({ checks, models, queues }: StatusReport): Facts {
  const states = Object.entries(checks).map(([name, state]) => `${name} ${state}`);
  const facts: Facts = [["Checks", states.join(", ") || "-"]];
  if (models === undefined) return facts;
  const names = models.slice(0, shownModels).join(", ");
  const more = models.length > shownModels ? ", …" : "";
  facts.push(["Models", models.length === 0 ? "none for this key" : `${models.length}: ${names}${more}`]);
  return queues === undefined ? facts : [...facts, ...queueFacts(queues)];
}

function keyFacts({ apiKey, keySource, keyRefused, key }: StatusReport, nowMs: number): Facts {
  if (keyRefused !== undefined) return [["Key", `refused, from ${keySource}`]];
  const shown = /^sk_[a-z]+_hr_/.test(apiKey) ? shownKey(displayParts(apiKey)) : "an access token";
  const facts: Facts = [["Key", `${shown}${key ? ` "${key.key.name}"` : ""}, from ${keySource}`]];
  if (!key) return facts;
  const { scopes, expires_at: expires, revoked_at: revoked } = key.key;
  const ends = [expires, revoked].filter((time) => time != null);
  const end = ends.length === 0 ? "never" : formatTimeAndRelative(Math.min(...ends), Math.floor(nowMs / 1000));
  facts.push(["Scopes", scopes.join(", ") || "-"], ["Expires", end]);
  return facts;
}

function accountFacts({ account: found, limits: own }: StatusReport, terminal: Terminal, nowMs: number): Facts {
  if (!found) return own ? limitFacts(own.read, terminal, nowMs) : [];
  const { name, id, tier, environment, rate: limits, quota, quotas } = found.read;
  const { unicode } = terminal;
  const count = (value: number | null | undefined) => formatCount(value);
  const usd = (value: number | null | undefined) => formatUsd(value);
  return [
    ["Account", `${name} (${id})`],
    ["Tier", tier],
    ["Environment", environment],
    ["Requests", rateText(limits.requests)],
    ["Tokens", rateText(limits.tokens)],
    ["Month, tokens", shareOf(quota.tokens, count, unicode)],
    ["Month, spend", shareOf(quota.spend, usd, unicode)],
    ["Month ends", formatTimeAndRelative(quota.period_end, Math.floor(nowMs / 1000))],
    ...quotaFacts(quotas ?? [], unicode, Math.floor(nowMs / 1000)),
  ];
}

function limitFacts(
  { environment, rate, quotas }: z.infer<typeof limitsShape>,
  terminal: Terminal,
  nowMs: number,
): Facts {
  return [
    ["Environment", environment],
    ["Requests", rateText(rate.requests)],
    ["Tokens", rateText(rate.tokens)],
    ...quotaFacts(quotas, terminal.unicode, Math.floor(nowMs / 1000)),
  ];
}
