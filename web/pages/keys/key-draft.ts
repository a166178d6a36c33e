// A key's settings while they are edited: the fields' values, their errors, and the request.
import type { ApiFailure } from "../../api/client.ts";
import { nowSeconds } from "../../api/server-time.ts";
import type { ApiKey, CreateKeyRequest, UpdateKeyRequest } from "../../api/types.ts";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { numberOf, type TypedNumber } from "../../parts/editing/typed-number.ts";
import {
  type QuotaDraft,
  quotaDraftsOf,
  quotasError,
  quotasProblemOf,
  rulesOf,
} from "../../parts/quotas/quota-draft.ts";
import { type ToolList, toolListError } from "../../parts/tools/tool-entries.ts";
import { keyAmounts, perAmount } from "../../parts/words/amounts.ts";
import { defaultScopes, type Scope } from "../../parts/words/scopes.ts";
import { isAddressOrRange } from "./addresses.ts";

/** When the key expires: in a number of days, on a date, or never. */
export type Expiry = "7" | "30" | "90" | "date" | "never";

export interface KeyDraft {
  name: string;
  scopes: readonly Scope[];
  expiry: Expiry;
  /** A date such as `2026-12-31` in the reader's time zone; only used if `expiry` is `date`. */
  date: string;
  addresses: string[];
  rateLimit: TypedNumber;
  windowSeconds: number;
  /** The monthly limits of tokens and spend; an empty field means no limit. */
  amounts: Record<KeyAmount["wire"], TypedNumber>;
  /** Model ids and patterns; empty means all models. */
  models: string[];
  tools: ToolList;
  neverLeaves: boolean;
  /** The priority of the key's requests; null means the tier's priority. */
  priority: ApiKey["priority"];
  /** `model` means that each model's own setting applies. */
  responseCache: "model" | "on" | "off";
  tags: string[];
  note: string;
  quotas: QuotaDraft[];
}

type KeyAmount = (typeof keyAmounts)[number];
type DraftErrors = Partial<Record<Field, string>>;
export type Field = (typeof fields)[number];
/** The API's names of the fields. */
const fields = [
  "name",
  "scopes",
  "expires_at",
  "allowed_ips",
  "rate_limit",
  ...keyAmounts.map(({ wire }) => wire),
  ...(["models", "tools", "never_leaves", "priority", "response_cache", "tags", "note"] as const),
  "quotas",
] as const;

/** The server's syntax rules, so that errors are shown before sending. */
const modelPattern = /^[^\s*]{1,255}\*?$/;
const tagPattern = /^(?!asked:|gateway:)[A-Za-z0-9][A-Za-z0-9._:@/=+-]{0,63}$/;

const daySeconds = 86_400;

export function newDraft(grantable: readonly Scope[]): KeyDraft {
  return {
    name: "",
    scopes: defaultScopes.filter((scope) => grantable.includes(scope)),
    expiry: "never",
    date: "",
    addresses: [],
    ...{ rateLimit: "", windowSeconds: 60, amounts: perAmount(keyAmounts, () => ""), quotas: [] },
    ...{ models: [], tools: null, neverLeaves: false, priority: null, responseCache: "model", tags: [], note: "" },
  };
}

export function draftOf(key: ApiKey): KeyDraft {
  return {
    name: key.name,
    scopes: key.scopes,
    expiry: key.expires_at === null ? "never" : "date",
    date: key.expires_at === null ? "" : localDate(key.expires_at),
    addresses: key.allowed_ips,
    rateLimit: key.rate_limit ?? "",
    windowSeconds: key.rate_limit_window ?? 60,
    amounts: perAmount(keyAmounts, ({ wire }) => key[wire] ?? ""),
    ...{ models: key.models ?? [], tools: key.tools, neverLeaves: key.never_leaves },
    ...{ priority: key.priority, responseCache: key.response_cache ?? "model" },
    ...{ tags: key.tags, note: key.note ?? "" },
    quotas: quotaDraftsOf(key.quotas),
  };
}

function errorsOf(draft: KeyDraft, now: number): DraftErrors {
  const errors: DraftErrors = {};
  if (draft.name.trim() === "") errors.name = "Enter a name, such as the program that will use the key.";
  if (draft.scopes.length === 0) errors.scopes = "Choose at least one permission.";
  const expires = expiresAt(draft, now);
  if (draft.expiry === "date") {
    if (expires === null || Number.isNaN(expires)) errors.expires_at = "Choose the last day on which the key works.";
    else if (expires <= now) errors.expires_at = "This day has passed. Choose today or a later day.";
  }
  const strange = draft.addresses.find((text) => !isAddressOrRange(text));
  if (strange !== undefined) {
    errors.allowed_ips = `${strange} is not an IPv4 or IPv6 address or a range such as 192.0.2.0/24 or 2001:db8::/32.`;
  }
  const noModel = draft.models.find((text) => !modelPattern.test(text));
  if (noModel !== undefined) errors.models = `${noModel} is not a model id or a prefix such as gpt-*.`;
  const toolsError = toolListError(draft.tools);
  if (toolsError !== undefined) errors.tools = toolsError;
  const noTag = draft.tags.find((text) => !tagPattern.test(text));
  if (noTag !== undefined) {
    errors.tags = `${noTag} is not a valid tag. Use at most 64 letters, digits and . _ : @ / = + -, starting with a letter or digit. A tag cannot start with asked: or gateway:.`;
  }
  const quotas = quotasError(draft.quotas);
  if (quotas !== undefined) errors.quotas = quotas;
  return errors;
}

/** The fields and error functions of a key's form, for `useDraft`. */
export const keyKind = {
  fields,
  errorsOf: (draft: KeyDraft) => errorsOf(draft, nowSeconds()),
  serverProblem: (error: ApiFailure | null, field: Field) =>
    field === "quotas" ? quotasProblemOf(error) : problemOf(error, field),
};

export function createRequestOf(draft: KeyDraft, now: number): CreateKeyRequest {
  return {
    name: draft.name.trim(),
    scopes: [...draft.scopes],
    expires_at: expiresAt(draft, now),
    allowed_ips: draft.addresses,
    ...limitsOf(draft),
    ...accessOf(draft),
    ...saidOf(draft),
    quotas: rulesOf(draft.quotas),
  };
}

/** Returns only what differs from `before`, because others may have changed the rest meanwhile. */
export function changesOf(draft: KeyDraft, before: KeyDraft, now: number): UpdateKeyRequest {
  const changes: UpdateKeyRequest = {};
  const limits = limitsOf(draft);
  if (draft.name.trim() !== before.name) changes.name = draft.name.trim();
  if (!sameItems(draft.scopes, before.scopes)) changes.scopes = [...draft.scopes];
  if (draft.expiry !== before.expiry || draft.date !== before.date) changes.expires_at = expiresAt(draft, now);
  if (!sameItems(draft.addresses, before.addresses)) changes.allowed_ips = draft.addresses;
  const isSameRate = draft.rateLimit === before.rateLimit && draft.windowSeconds === before.windowSeconds;
  if (!isSameRate) {
    changes.rate_limit = limits.rate_limit;
    changes.rate_limit_window = limits.rate_limit_window;
  }
  for (const { wire } of keyAmounts) {
    if (draft.amounts[wire] !== before.amounts[wire]) changes[wire] = limits[wire];
  }
  if (!sameItems(draft.models, before.models)) changes.models = accessOf(draft).models;
  if (JSON.stringify(draft.tools) !== JSON.stringify(before.tools)) changes.tools = accessOf(draft).tools;
  if (draft.neverLeaves !== before.neverLeaves) changes.never_leaves = draft.neverLeaves;
  if (draft.priority !== before.priority) changes.priority = draft.priority;
  if (draft.responseCache !== before.responseCache) changes.response_cache = accessOf(draft).response_cache;
  if (!sameItems(draft.tags, before.tags)) changes.tags = draft.tags;
  if (draft.note.trim() !== before.note) changes.note = saidOf(draft).note;
  const [quotas, quotasBefore] = [rulesOf(draft.quotas), rulesOf(before.quotas)];
  if (JSON.stringify(quotas) !== JSON.stringify(quotasBefore)) changes.quotas = quotas;
  return changes;
}

function accessOf({ models, tools, neverLeaves, priority, responseCache }: KeyDraft) {
  return {
    priority,
    models: models.length === 0 ? null : models,
    tools: tools && [...tools],
    never_leaves: neverLeaves,
    response_cache: responseCache === "model" ? null : responseCache,
  };
}

function saidOf({ tags, note }: KeyDraft) {
  return { tags, note: note.trim() === "" ? null : note.trim() };
}

/**
 * Returns the key's end in Unix seconds: some days from now, or the end of the chosen day in the reader's time zone.
 * Returns null if the key never expires, and NaN if no date is chosen.
 */
export function expiresAt({ expiry, date }: Pick<KeyDraft, "expiry" | "date">, now: number): number | null {
  if (expiry === "never") return null;
  if (expiry !== "date") return Math.floor(now) + Number(expiry) * daySeconds;
  return Math.floor(new Date(`${date}T23:59:59`).getTime() / 1000);
}

function limitsOf({ rateLimit, windowSeconds, amounts }: KeyDraft) {
  const limit = numberOf(rateLimit);
  return {
    rate_limit: limit,
    rate_limit_window: limit === null ? null : windowSeconds,
    ...perAmount(keyAmounts, ({ wire }) => numberOf(amounts[wire])),
  };
}

function sameItems(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((item) => others.includes(item));
}

function localDate(seconds: number): string {
  const moment = new Date(seconds * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
}
