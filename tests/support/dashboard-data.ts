// Records such as a month of use leaves behind, for the dashboard to show: the same in each run, but for ids and times.
import type { AuditAction, AuditActor, AuditEvent } from "../../src/domain/audit.ts";
import type { NewChat } from "../../src/domain/models/stored-chat.ts";
import { type ApiKeyRecord, newAndUnbounded } from "../../src/domain/principal.ts";
import { accountScopes, defaultScopes, type Scope } from "../../src/domain/scope.ts";
import type { UsageOutcome, UsageRecord } from "../../src/domain/usage/usage.ts";
import { dashboardModels, failingModel, modelsUpTo } from "./dashboard-models.ts";

export const hour = 3_600;
export const day = 86_400;

/** Who and when: everything is of this account, in `dev`, and before `now` (Unix seconds). */
export interface Setting {
  accountId: string;
  now: number;
  /** From 0 up to, and without, 1. */
  random: () => number;
  /** How many models there are; those of every world unless said. */
  models?: number;
}

/** What requests are made with. */
export interface Source {
  keyId: string;
  appId: string | null;
  weight: number;
}

/** `prefix_` and a UUIDv7 of that time, in Unix seconds. */
export function idAt(prefix: string, at: number): string {
  return `${prefix}_${Bun.randomUUIDv7("hex", at * 1000)}`;
}

const keyIdeas: readonly (readonly [name: string, changes: (now: number) => Partial<ApiKeyRecord>])[] = [
  ["Production website", (now) => ({ lastUsedAt: now - 40, monthlyTokens: 20_000_000, monthlySpend: 250 })],
  ["Nightly batch", (now) => ({ lastUsedAt: now - 5 * hour, rateLimit: 600, rateLimitWindow: 60 })],
  ["Support bot", (now) => ({ lastUsedAt: now - 300, allowedIps: ["203.0.113.0/24", "2001:db8::/32"] })],
  ["CI pipeline", (now) => ({ lastUsedAt: now - 2 * hour, expiresAt: now + 3 * day })],
  ["Notebook of Katherine", (now) => ({ lastUsedAt: now - day, scopes: ["chat:write", "models:read"] })],
  ["Usage export", (now) => ({ lastUsedAt: now - 9 * hour, scopes: ["usage:read"] })],
  ["Key manager", (now) => ({ lastUsedAt: now - 12 * day, scopes: accountScopes })],
  ["Rotating now", (now) => ({ lastUsedAt: now - 60, revokedAt: now + 6 * hour })],
  ["Never used", () => ({})],
  ["Hackathon 2024", (now) => ({ lastUsedAt: now - 20 * day, expiresAt: now - 10 * day })],
  ["Old laptop", (now) => ({ lastUsedAt: now - 15 * day, revokedAt: now - 14 * day, revoked: true })],
  ["Posted in a chat by mistake", (now) => ({ lastUsedAt: now - 3 * day, revokedAt: now - 3 * day, revoked: true })],
];

/** Nobody has their secrets. The first are varied; the rest are workers with numbers. */
export function someKeys({ accountId, now, random }: Setting, count: number, createdBy: string): ApiKeyRecord[] {
  return Array.from({ length: count }, (_, i) => {
    const createdAt = now - 29 * day + Math.floor((i / count) * 28 * day);
    const id = idAt("key", createdAt);
    const [name, changes] = keyIdeas[i] ?? [`Worker ${String(i).padStart(5, "0")}`, () => worker(now, random)];
    return {
      ...newAndUnbounded,
      ...{ id, limitId: id, digest: `nobody has ${id}`, kind: "key", accountId, environment: "dev", name, createdAt },
      ...{
        prefix: "sk_dev_hr_",
        last4: Math.floor(random() * 36 ** 4)
          .toString(36)
          .padStart(4, "0"),
      },
      ...{ createdBy, parentId: null, personId: null, appId: null, role: null, scopes: defaultScopes },
      ...changes(now),
    };
  });
}

function worker(now: number, random: () => number): Partial<ApiKeyRecord> {
  const lastUsedAt = random() < 0.8 ? now - Math.floor(random() * 20 * day) : null;
  const fate = random();
  if (fate < 0.1) return { lastUsedAt, revokedAt: now - 2 * day, revoked: true };
  return fate < 0.2 ? { lastUsedAt, expiresAt: now - day } : { lastUsedAt };
}

const endings: readonly (readonly [share: number, outcome: UsageOutcome, errorCode: string | null])[] = [
  [0.955, "completed", null],
  [0.97, "cancelled", null],
  [0.985, "failed", "upstream_error"],
  [0.993, "failed", "upstream_timeout"],
  [0.998, "failed", "service_unavailable"],
  [1, "interrupted", null],
];
/** Relative, in the order of `dashboardModels`; of any other, one. */
const modelWeights = [3, 8, 3, 4, 0.4];

/**
 * Over `days` up to now, more of them lately and by day than by night, and some within the last minutes; in the order of time.
 */
export function someUsage(setting: Setting, sources: readonly Source[], count: number, days = 30): UsageRecord[] {
  const { now, random } = setting;
  const models = modelsUpTo(setting.models ?? dashboardModels.length);
  const weights = models.map((_, at) => modelWeights[at] ?? 1);
  const pickModel = () => pick(models, weights, random);
  const records = Array.from({ length: count }, (_, i) => {
    const isRecent = i < count / 50;
    const at = isRecent ? now - Math.floor(random() * 840) : someTime(now, days, random);
    return someRequest(setting, at, sources, pickModel);
  });
  return records.sort((a, b) => a.at - b.at);
}

function someTime(now: number, days: number, random: () => number): number {
  for (;;) {
    const at = now - 1 - Math.floor(random() ** 1.4 * days * day);
    const daylight = 0.55 - 0.45 * Math.cos(((at % day) / day) * 2 * Math.PI);
    if (random() < daylight) return at;
  }
}

function someRequest(
  { accountId, random }: Setting,
  at: number,
  sources: readonly Source[],
  pickModel: () => ReturnType<typeof modelsUpTo>[number],
): UsageRecord {
  const { keyId, appId } = pick(
    sources,
    sources.map(({ weight }) => weight),
    random,
  );
  const { id: model, price, operation, upstreams } = pickModel();
  const chance = random();
  const [, outcome, errorCode] =
    model === failingModel
      ? ([1, "failed", "upstream_error"] as const)
      : (endings.find(([share]) => chance < share) ?? ([1, "completed", null] as const));
  const hasFailed = outcome === "failed";
  const generates = operation === "chat" && !hasFailed;
  const promptTokens = hasFailed ? 0 : Math.floor(20 + random() ** 3 * 6_000);
  const completionTokens = generates ? Math.floor(5 + random() ** 2 * 900) : 0;
  const queueMs = random() < 0.15 ? Math.floor(random() * 1_500) : 0;
  const stream = operation === "chat" && random() < 0.7;
  const pace = model === "aurora-large" ? 45 : 110;
  const firstTokenMs = generates ? queueMs + Math.floor(80 + random() * 500 + promptTokens / 20) : null;
  const generationMs = (completionTokens / (pace * (0.7 + random() * 0.6))) * 1_000;
  return {
    ...{ requestId: idAt("req", at), at, accountId, keyId, appId, environment: "dev", operation, model, stream },
    ...{ outcome, errorCode, promptTokens, completionTokens, estimated: outcome === "cancelled", capped: false },
    nanoUsd: price && Math.round((promptTokens * price.input + completionTokens * price.output) * 1_000),
    upstream:
      errorCode === "service_unavailable"
        ? null
        : pick(
            upstreams,
            upstreams.map(() => 1),
            random,
          ),
    durationMs: Math.floor((firstTokenMs ?? queueMs + 40 + random() * 400) + generationMs),
    ...{ firstTokenMs, queueMs },
    tags: tagsAt(at),
  };
}

/** A team of most requests, of some the project and the customer; by their time, so that nothing else is another for it. */
function tagsAt(at: number): string[] | undefined {
  if (at % 4 === 0) return undefined;
  const team = ["team:search", "team:support", "team:research"][at % 3] ?? "";
  return [team, ...(at % 5 === 0 ? ["project:assistant-2"] : []), ...(at % 7 === 0 ? ["customer:acme"] : [])];
}

function pick<Value>(values: readonly Value[], weights: readonly number[], random: () => number): Value {
  let left = random() * weights.reduce((sum, weight) => sum + weight, 0);
  const found = values.find((_, i) => {
    left -= weights[i] ?? 0;
    return left < 0;
  });
  const value = found ?? values[0];
  if (value === undefined) throw new Error("There is nothing to pick from.");
  return value;
}

const questions = [
  ["How do I rotate an API key without downtime?", "Give the old key an overlap: both work until the old one ends."],
  ["Write a haiku about a mill.", "Water finds its way / the old wheel turns with patience / flour falls like snow"],
  ["Summarize the meeting notes from Tuesday.", "Three decisions were taken: budget, hiring and the release date."],
  ["Translate „Guten Morgen“ into Norwegian.", "God morgen."],
  ["Why is my SQL query slow?", "It has no index for its WHERE clause, so the whole table is read."],
  ["Plan a weekend in Lisbon.", "Saturday: Alfama and the river. Sunday: Belém, then the train to Sintra."],
  ["Explain photosynthesis to a child.", "Plants eat sunlight: they cook sugar from water and air with it."],
  ["Give me three names for a sailing boat.", "Wandering Albatross, Second Wind, Grey Heron."],
] as const;

export function someChats({ accountId, now, random }: Setting, sources: readonly Source[], count: number): NewChat[] {
  return Array.from({ length: count }, (_, i) => {
    const createdAt = now - 120 - Math.floor((i / count) * 12 * day);
    const [question, content] = questions[i % questions.length] ?? questions[0];
    const source = pick(
      sources,
      sources.map(({ weight }) => weight),
      random,
    );
    const model = ["aurora-large", "aurora-mini", "ember-code"][i % 3] ?? "aurora-mini";
    const id = `chatcmpl-${Bun.randomUUIDv7("hex", createdAt * 1000)}`;
    const usage = { prompt_tokens: 24, completion_tokens: 18, total_tokens: 42 };
    const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
    const system = { role: "system", content: "Answer briefly and kindly." };
    return {
      ...{ id, accountId, environment: "dev", keyId: source.keyId, appId: source.appId, personId: null, model },
      ...{ createdAt, expiresAt: createdAt + 30 * day },
      metadata: i % 4 === 0 ? { topic: "support", customer: `c-${100 + i}` } : {},
      parameters: i % 2 === 0 ? { temperature: 0.7, max_completion_tokens: 400 } : {},
      completion: { id, object: "chat.completion", created: createdAt, model, choices, usage },
      messages: [...(i % 3 === 0 ? [system] : []), { role: "user", content: question }],
    };
  });
}

export interface AuditNames {
  personId: string;
  keys: readonly ApiKeyRecord[];
}

/** Events as if they had been told over the last four weeks; of the account, one of each kind in turn. */
export function someEvents({ accountId, now, random }: Setting, names: AuditNames, count: number): AuditEvent[] {
  const person: AuditActor = { type: "person", id: names.personId };
  const nobody: AuditActor = { type: "anonymous" };
  return Array.from({ length: count }, (_, i) => {
    const key = names.keys[i % names.keys.length];
    const { id: keyId = "key_1", name = "A key", scopes = [] as readonly Scope[] } = key ?? {};
    const kinds: readonly (readonly [AuditAction, AuditActor, string, Record<string, unknown>])[] = [
      ["key.created", person, keyId, { name, environment: "dev", scopes }],
      ["key.updated", person, keyId, { rate_limit: { before: null, after: 600 } }],
      ["token.issued", { type: "key", id: keyId }, keyId, { scopes }],
      ["credential.refused", nobody, keyId, { reason: "expired" }],
      ["key.rotated", person, keyId, { name }],
      ["credential.refused", nobody, keyId, { reason: "address_not_allowed" }],
      ["key.revoked", person, keyId, { name }],
    ];
    const at = now - 60 - Math.floor((i / count) * 28 * day);
    const [action, actor, targetId, detail] = kinds[i % kinds.length] ?? ["key.revoked", person, keyId, {}];
    const clientAddress = `203.0.113.${1 + Math.floor(random() * 250)}`;
    return {
      id: idAt("audit", at),
      at,
      action,
      actor,
      accountId,
      targetId,
      clientAddress,
      requestId: idAt("req", at),
      detail,
    };
  });
}

const refusalReasons = [
  ...["key_requests", "key_tokens", "account_requests", "account_tokens"],
  ...["key_quota", "account_quota", "capacity"],
] as const;

/** Rows of the table `refusals`, over the last two days. */
export function someRefusals({ accountId, now, random }: Setting, sources: readonly Source[], count: number) {
  return Array.from({ length: count }, (_, i) => {
    const start = now - (now % hour) - Math.floor(i / 2) * hour;
    const { keyId, appId } = sources[i % sources.length] ?? { keyId: "key_1", appId: null };
    const model = dashboardModels[i % dashboardModels.length]?.id ?? "aurora-mini";
    const reason = refusalReasons[i % refusalReasons.length] ?? "capacity";
    return {
      ...{ account_id: accountId, environment: "dev", start, key_id: keyId, app_id: appId ?? "", model, reason },
      ...{ requests: 1 + Math.floor(random() * 40), last_at: Math.min(now, start + Math.floor(random() * hour)) },
    };
  });
}
