// Reads the usage of an organization, account or key in a time range: from roll-ups and, for an incomplete first hour, from single
// records.

import { matchesModel } from "../../domain/models/model-patterns.ts";
import { ownAppId, type SpanTotals, type TotalsOwner } from "../../domain/usage/usage.ts";
import type { Database } from "../../storage/sql/database.ts";
import { accountsOf } from "../../storage/tables/credential-rows.ts";
import { hourlyUsageKeptFrom, requestsKeptFrom } from "../../storage/tables/retention-store.ts";
import { tagInText } from "../../storage/tables/tags-text.ts";
import { at, type UsageColumns } from "./usage-columns.ts";
import type { TotalOf, UsageSpan } from "./usage-sums.ts";

/**
 * An owner's usage in the database, and how to find the owner's usage among records that are not in the database yet.
 */
export interface OwnerTotals {
  totals: SpanTotals;
  totalOf: TotalOf;
  owns(usage: UsageColumns, row: number): boolean;
}

const hourSeconds = 3_600;
const daySeconds = 86_400;
/** Maximum records (of all accounts) in an incomplete first hour that are added up one by one. */
const maxRecords = 200_000;

export async function readOwnerTotals(db: Database, owner: TotalsOwner): Promise<OwnerTotals> {
  const { type, id, environment, since, until, models, tag } = owner;
  const keyIds = type === "key" ? await readFamily(db, id) : undefined;
  const accountIds = type === "organization" ? await readAccountsOf(db, id) : new Set([id]);
  const organizationId = type === "organization" ? id : undefined;
  const whose: Whose = { accountIds, organizationId, keyIds, environment, models, tag };
  const isWholeDay = since % daySeconds === 0;
  const kept = isWholeDay ? undefined : await readKeptFrom(db);
  const part: UsageSpan = kept !== undefined && floorTo(since, hourSeconds) < kept.hours ? "day" : "hour";
  const totals = noTotals();
  for (const piece of piecesOf(since, until, part)) add(totals, await readRollups(db, whose, piece, since));
  const first = await readFirst(db, whose, { since, until, part, recordsFrom: kept?.records ?? 0 });
  add(totals, first.totals);
  // If the first hour was read from its records, it already includes usage that is not in the roll-ups yet.
  const totalOf = { ...ownerOf(whose), since: first.isOfRecords ? ceilTo(since, hourSeconds) : since, until };
  return {
    totals,
    totalOf,
    owns: (usage, row) => isOf(whose, usage, row) && usage.number(row, at) >= since && usage.number(row, at) < until,
  };
}

/** Adds `more` to `totals`. */
export function add(totals: SpanTotals, more: SpanTotals): void {
  totals.requests += more.requests;
  totals.tokens += more.tokens;
  totals.nanoUsd += more.nanoUsd;
  if (more.firstAt !== undefined) totals.firstAt = Math.min(totals.firstAt ?? more.firstAt, more.firstAt);
}

export function noTotals(): SpanTotals {
  return { requests: 0, tokens: 0, nanoUsd: 0, firstAt: undefined };
}

interface Whose {
  /** The account, or the accounts of the organization. */
  accountIds: ReadonlySet<string>;
  organizationId: string | undefined;
  /** Ids of the keys whose usage counts; undefined for all keys of the accounts. */
  keyIds: ReadonlySet<string> | undefined;
  environment: string;
  models: readonly string[] | undefined;
  tag: string | undefined;
}

interface Piece {
  span: UsageSpan;
  from: number;
  to: number;
}

/** Returns the roll-ups that lie entirely after `since`. */
function piecesOf(since: number, until: number, part: UsageSpan): Piece[] {
  const firstDay = ceilTo(since, daySeconds);
  const lastDay = Math.max(firstDay, floorTo(until, daySeconds));
  const pieces: Piece[] = [
    { span: "hour", from: ceilTo(since, hourSeconds), to: part === "day" ? 0 : Math.min(firstDay, until) },
    { span: "day", from: firstDay, to: lastDay },
    { span: "hour", from: lastDay, to: until },
  ];
  return pieces.filter(({ from, to }) => from < to);
}

/**
 * Reads the usage of an incomplete first hour or day, in which `since` lies. Reads single records if the roll-up also
 * counts usage before `since`. If there are too many records, counts the whole roll-up, because no usage may be
 * missing.
 */
async function readFirst(
  db: Database,
  whose: Whose,
  { since, until, part, recordsFrom }: { since: number; until: number; part: UsageSpan; recordsFrom: number },
): Promise<{ totals: SpanTotals; isOfRecords: boolean }> {
  const seconds = part === "hour" ? hourSeconds : daySeconds;
  const from = floorTo(since, seconds);
  if (from === since) return { totals: noTotals(), isOfRecords: false };
  const piece = { span: part, from, to: from + 1 };
  const totals = await readRollups(db, whose, piece, since);
  const end = Math.min(until, from + seconds);
  const isExact = totals.requests === 0 || totals.firstAt !== since;
  if (isExact || part === "day" || since < recordsFrom || (await areMany(db, since, end))) {
    return { totals, isOfRecords: false };
  }
  return { totals: await readRecords(db, whose, since, end), isOfRecords: true };
}

/** Adds up roll-ups. If they include usage before `since`, `firstAt` is `since`. */
async function readRollups(db: Database, whose: Whose, { span, from, to }: Piece, since: number): Promise<SpanTotals> {
  const { tag } = whose;
  const [row] = await db`
    SELECT coalesce(sum(requests), 0) AS requests, coalesce(sum(prompt_tokens + completion_tokens), 0) AS tokens,
      coalesce(sum(nano_usd), 0) AS nano_usd,
      min(CASE WHEN first_at < ${since} THEN ${since} ELSE first_at END) AS first_at
    FROM ${db.unsafe(tag === undefined ? "usage_rollups" : "usage_tag_rollups")}
    WHERE ${ownedBy(db, whose)} ${tag === undefined ? db`` : db`AND tag = ${tag}`} AND span = ${span} AND start >= ${from} AND start < ${to} AND last_at >= ${since}`;
  return totalsOf(row);
}

async function readRecords(db: Database, whose: Whose, since: number, until: number): Promise<SpanTotals> {
  const { tag } = whose;
  const [row] = await db`
    SELECT count(*) AS requests, coalesce(sum(prompt_tokens + completion_tokens), 0) AS tokens,
      coalesce(sum(nano_usd), 0) AS nano_usd, min(at) AS first_at
    FROM usage_records WHERE ${ownedBy(db, whose)} AND at >= ${since} AND at < ${until}
      ${tag === undefined ? db`` : db`AND replace(tags, ${tagInText(tag)}, '') <> tags`}`;
  return totalsOf(row);
}

async function areMany(db: Database, since: number, until: number): Promise<boolean> {
  const [row]: { n: number | string }[] = await db`
    SELECT count(*) AS n FROM (
      SELECT 1 FROM usage_records WHERE at >= ${since} AND at < ${until} LIMIT ${maxRecords + 1}
    ) AS found`;
  return Number(row?.n) > maxRecords;
}

/** Returns the Unix seconds of the oldest records and of the oldest hourly roll-ups that retention keeps. */
async function readKeptFrom(db: Database): Promise<{ records: number; hours: number }> {
  const rows: { name: string; value: string }[] = await db`
    SELECT name, value FROM installation WHERE name IN ${db([requestsKeptFrom, hourlyUsageKeptFrom])}`;
  const of = (name: string) => Number(rows.find((row) => row.name === name)?.value ?? 0);
  return { records: of(requestsKeptFrom), hours: of(hourlyUsageKeptFrom) };
}

/** Returns the SQL condition for the owner's usage. Requests that the gateway makes itself count against no quota. */
function ownedBy(db: Database, { accountIds, organizationId, keyIds, environment, models }: Whose) {
  const ofAccounts =
    organizationId === undefined
      ? db`account_id = ${[...accountIds][0] ?? ""}`
      : db`account_id IN ${accountsOf(db, organizationId)}`;
  const whose = keyIds === undefined ? ofAccounts : db`key_id IN ${db([...keyIds])}`;
  const owner = db`${whose} AND coalesce(app_id, '') <> ${ownAppId}`;
  if (models === undefined) return db`${owner} AND environment = ${environment}`;
  const matches = models.map((pattern) => {
    const start = pattern.slice(0, -1);
    return pattern.endsWith("*") ? db`substr(model, 1, ${[...start].length}) = ${start}` : db`model = ${pattern}`;
  });
  const anyOf = matches.reduce((all, one) => db`${all} OR ${one}`);
  return db`${owner} AND environment = ${environment} AND (${anyOf})`;
}

function ownerOf({ accountIds, keyIds, environment, models, tag }: Whose): Omit<TotalOf, "since" | "until"> {
  return {
    ...(keyIds === undefined ? { accountIds } : { keyIds }),
    environment,
    ...(models && { models }),
    ...(tag !== undefined && { tag }),
  };
}

function isOf({ accountIds, keyIds, environment, models, tag }: Whose, usage: UsageColumns, row: number): boolean {
  const { request } = usage.kindAt(row);
  if (request.environment !== environment || usage.appIds[row] === ownAppId) return false;
  if (models !== undefined && !matchesModel(models, request.model)) return false;
  if (tag !== undefined && !usage.tagsAt(row)?.includes(tag)) return false;
  return keyIds === undefined ? accountIds.has(usage.accountIds[row] ?? "") : keyIds.has(usage.keyIds[row] ?? "");
}

async function readAccountsOf(db: Database, organizationId: string): Promise<Set<string>> {
  const rows: { id: string }[] = await db`SELECT id FROM accounts WHERE organization_id = ${organizationId}`;
  return new Set(rows.map(({ id }) => id));
}

/**
 * Returns the ids of all keys that count against this key's limit: itself, its rotations, and the keys that were
 * created with any of them.
 */
async function readFamily(db: Database, id: string): Promise<Set<string>> {
  const rows: { id: string }[] = await db`
    WITH RECURSIVE family (id) AS (
      SELECT id FROM api_keys
      WHERE id = ${id} OR limit_id = ${id} OR limit_id = (SELECT limit_id FROM api_keys WHERE id = ${id})
      UNION
      SELECT api_keys.id FROM api_keys JOIN family ON api_keys.parent_id = family.id
    )
    SELECT id FROM family`;
  return new Set([id, ...rows.map((row) => row.id)]);
}

type Sum = number | string;

function totalsOf(row: { requests: Sum; tokens: Sum; nano_usd: Sum; first_at: Sum | null }): SpanTotals {
  return {
    requests: Number(row.requests),
    tokens: Number(row.tokens),
    nanoUsd: Number(row.nano_usd),
    firstAt: row.first_at === null ? undefined : Number(row.first_at),
  };
}

function floorTo(seconds: number, step: number): number {
  return Math.floor(seconds / step) * step;
}

function ceilTo(seconds: number, step: number): number {
  return Math.ceil(seconds / step) * step;
}
