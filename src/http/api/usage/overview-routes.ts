// The endpoints for the overview page of an account, and of all accounts. The page requests all its data every few
// seconds.

import { z } from "zod";
import { GatewayError, refusalReasons } from "../../../base/errors.ts";
import { ownOnly, type Principal, seesUsageOf } from "../../../domain/principal.ts";
import type { RequestOwner } from "../../../domain/usage/request-log.ts";
import type { UsageParties } from "../../../domain/usage/statement.ts";
import type { UsageGroup, UsageQuery } from "../../../domain/usage/usage.ts";
import { requireOperator } from "../../../policy/manage/operator.ts";
import type { RequestHistory } from "../../../policy/records/request-history.ts";
import { Turns } from "../../../policy/turns.ts";
import { unixSeconds } from "../../../wire/parts.ts";
import { isSameTag, weakTagOf } from "../../content/entity-tag.ts";
import { KeptBriefly } from "../../content/kept-briefly.ts";
import { readQuery } from "../../content/query.ts";
import type { PlainAnswer, ScopedRoute } from "../../exchange/route.ts";
import { type AccountRouteDeps, accountShape, accountToWire } from "../account-routes.ts";
import { type NameSources, namesOf } from "../people/credential-names.ts";
import {
  figuresShape,
  figuresToWire,
  noGroups,
  rankedGroups,
  rankingShape,
  type Steps,
  seriesShape,
  stepSums,
  sumsUntil,
} from "./overview-figures.ts";
import { type RefusalRouteDeps, refusalsByReason } from "./refusal-routes.ts";
import { timesShape, timesToWire } from "./speed-wire.ts";
import { usageOwnerOf } from "./usage-owner.ts";
import type { UsageRouteDeps } from "./usage-routes.ts";
import { writtenSoon } from "./written-soon.ts";

export interface OverviewRouteDeps
  extends Pick<UsageRouteDeps, "reports" | "ledger" | "retention">,
    RefusalRouteDeps,
    AccountRouteDeps,
    NameSources {
  requestHistory: Pick<RequestHistory, "list">;
  parties: Pick<UsageParties, "names">;
}

const hour = 3_600;
const day = 24 * hour;
/**
 * The time ranges of the page. `bucket` is the time unit of the usage reports. `step` is the time unit of the charts,
 * in seconds.
 */
const ranges = {
  "24h": { bucket: "hour", step: hour, count: 24 },
  "7d": { bucket: "hour", step: 6 * hour, count: 28 },
  "30d": { bucket: "day", step: day, count: 30 },
} as const;
const rangeNames = ["24h", "7d", "30d"] as const;
const groups = ["model", "key", "app"] as const satisfies readonly UsageGroup[];
/**
 * The groupings over all accounts whose sums are stored. Other groupings would add up the usage of every key each time
 * a page polls.
 */
const groupsOfAll = ["account", "model", "upstream", "deployment", "outcome"] as const satisfies readonly UsageGroup[];
const shownErrors = 6;
/**
 * The last bucket of the previous period counts in part. The counted part is rounded to a multiple of 1/60, so that
 * repeated answers are equal.
 */
const partsOfBucket = 60;
const keptAnswers = 64;
const endOfTime = 253_402_300_800;

const rangeQuery = z.object({
  range: z
    .enum(rangeNames)
    .default("24h")
    .meta({
      description: `one of ${rangeNames.join(", ")}: the time up to now, in steps of an hour, six hours or a day`,
    }),
});
const groupQuery = <const Names extends readonly UsageGroup[]>(known: Names) =>
  z
    .enum(known)
    .optional()
    .meta({ description: `one of ${known.join(", ")}; by default no grouping` });
const overviewQuery = rangeQuery.extend({ group_by: groupQuery(groups) });
const allQuery = rangeQuery.extend({ group_by: groupQuery(groupsOfAll) });
type Asked = z.output<typeof rangeQuery> & { group_by?: UsageGroup | undefined };

const names = z.record(z.string(), z.string());

const usageShape = z.object({
  start: unixSeconds.describe("Start of the first step in Unix seconds. Steps are aligned to UTC."),
  step: z.int().describe("Length of a step in seconds. The last step is not over yet."),
  sum: figuresShape.extend({ percentiles: timesShape }).describe("Totals of all steps."),
  before: figuresShape.describe("Totals of the preceding time, of the same length as the time so far."),
  is_new: z
    .boolean()
    .describe(
      "True if the account made no request in this environment within the last year, as far as the caller can see.",
    ),
  total: seriesShape.describe("The figures by step."),
  groups: z
    .array(seriesShape.extend({ id: z.string().nullable() }))
    .describe("Groups that lead in at least one figure, those with the most requests first. Empty without `group_by`."),
  ranking: rankingShape.describe(
    "Leading groups of each figure, as indexes into `groups`: those with the highest value or, for a mean, those with the most measurements.",
  ),
  group_count: z.int().describe("Number of groups, including groups that are not listed."),
});

const throttledShape = z
  .array(
    z.object({
      reason: z.enum(refusalReasons),
      requests: z.int(),
      last_at: unixSeconds,
      key: z
        .string()
        .nullable()
        .describe("Credential with the most refused requests. null: too many credentials at once to tell them apart."),
      model: z.string().nullable(),
    }),
  )
  .describe("Requests refused by limits in this time, the most frequent reason first.");

const errorsShape = z
  .array(
    z.object({
      id: z.string(),
      at: unixSeconds,
      model: z.string(),
      key: z.string(),
      error_code: z.string().nullable(),
    }),
  )
  .describe("Last failed requests, of any time.");

const overviewShape = z
  .object({
    object: z.literal("overview"),
    range: z.enum(rangeNames),
    group_by: z.enum(groups).nullable(),
    usage: usageShape,
    throttled: throttledShape,
    errors: errorsShape,
    names: names.describe("Names of the keys, members and apps above by id, as far as the caller may list them."),
    account: accountShape,
  })
  .meta({ id: "Overview" });
const overviewOfAll = overviewShape
  .omit({ account: true })
  .extend({
    group_by: z.enum(groupsOfAll).nullable(),
    names: names.describe("Names of the accounts, credentials and apps above by id."),
  })
  .meta({ id: "OverviewOfAllAccounts" });

type Overview = z.infer<typeof overviewShape>;
type Slow = Omit<Overview, "object" | "range" | "group_by" | "account">;

/** The part of the usage that an overview shows, and the names that the reader may see. */
interface View {
  /** The first part of the cache key. Readers with the same key see the same figures. */
  key: string;
  owner: Omit<RequestOwner, "accountId"> & { accountId: string | null };
  namesOf(ids: string[]): Promise<Record<string, string>>;
}

export function overviewRoutes(deps: OverviewRouteDeps): ScopedRoute[] {
  const kept = new KeptBriefly<Slow>(deps.clock, keptAnswers);
  // One overview is computed at a time, because SQLite runs on the main thread.
  const turns = new Turns(1, keptAnswers);
  const slow = async (view: View, asked: Asked): Promise<Slow> => {
    await Promise.all([writtenSoon(deps.ledger), writtenSoon(deps.refusalCounts)]);
    const key = JSON.stringify([view.key, asked.range, asked.group_by]);
    return kept.get(key, () => turns.run(() => slowPart(deps, view, asked)) ?? tooMany());
  };
  const polling =
    "The answer has an `ETag`. If a request has it in `If-None-Match` and nothing changed, the answer is `304` without a body.";
  const seldom = "Sums that take long are renewed less often, at least every ten seconds.";
  return [
    {
      method: "GET",
      path: "/v1/overview",
      access: "usage:read",
      doc: {
        operationId: "getOverview",
        summary: "Retrieve an overview of the account",
        description: `Returns usage over a time by step and group, refused requests, remaining limits and the last failures, for a page that polls every few seconds. ${polling} Covers the credential's own environment. A member sees only their own usage and requests unless an owner allowed more, and an app sees its own. ${seldom}`,
        tag: "Usage",
        query: overviewQuery,
        response: { description: "The overview.", json: overviewShape },
      },
      async handle({ req }, principal) {
        const asked = readQuery(overviewQuery, req.target);
        const [part, account] = await Promise.all([
          slow(viewOf(principal, deps), asked),
          accountToWire(deps, principal),
        ]);
        const { range, group_by = null } = asked;
        const answer: Overview = { object: "overview", range, group_by, ...part, account };
        return withTag(JSON.stringify(answer), req.headers.get("if-none-match"));
      },
    },
    {
      method: "GET",
      path: "/v1/admin/overview",
      access: "admin:manage",
      doc: {
        operationId: "getOverviewOfAccounts",
        summary: "Retrieve an overview of all accounts",
        description: `Returns usage over a time by step and group, refused requests and the last failures of all accounts, for a page that polls every few seconds: figures, never content. ${polling} Covers the credential's own environment. ${seldom}`,
        tag: "Administration",
        query: allQuery,
        response: { description: "The overview.", json: overviewOfAll },
        errors: ["permission_denied"],
      },
      async handle({ req }, principal) {
        requireOperator(principal);
        const asked = readQuery(allQuery, req.target);
        const { environment } = principal;
        const part = await slow(
          {
            key: `all ${environment}`,
            owner: { accountId: null, environment },
            namesOf: (ids) => deps.parties.names(ids),
          },
          asked,
        );
        const { range, group_by = null } = asked;
        const answer: z.infer<typeof overviewOfAll> = { object: "overview", range, group_by, ...part };
        return withTag(JSON.stringify(answer), req.headers.get("if-none-match"));
      },
    },
  ];
}

function tooMany(): Promise<never> {
  const retryAfterSeconds = 5;
  const error = new GatewayError(
    "service_unavailable",
    `Too many overviews are being summed. Retry in ${retryAfterSeconds} s.`,
    { retryAfterSeconds },
  );
  return Promise.reject(error);
}

function viewOf(principal: Principal, deps: OverviewRouteDeps): View {
  const { account, environment, appId, person, scopes } = principal;
  const names = [seesUsageOf(principal), ownOnly(principal), person?.id, person?.role, scopes.has("keys:manage")];
  return {
    key: JSON.stringify([account.id, environment, appId, names]),
    owner: usageOwnerOf(principal),
    namesOf: (ids) => namesOf(ids, principal, deps),
  };
}

async function slowPart(deps: OverviewRouteDeps, view: View, asked: Asked): Promise<Slow> {
  const now = deps.clock.nowSeconds();
  const { owner } = view;
  const usage = await usageOf(deps, owner, asked, now);
  const throttled = refusalsByReason(
    await deps.refusalStore.list({ ...owner, start: hourOf(usage.start), end: hourOf(now) + hour }, maxRefusals),
  );
  const errors = await lastErrors(deps, owner);
  const isNamed = asked.group_by !== undefined && namedGroups.has(asked.group_by);
  const ids = [
    ...(isNamed ? usage.groups.map(({ id }) => id) : []),
    ...throttled.map(({ key }) => key),
    ...errors.map(({ key }) => key),
  ];
  return { usage, throttled, errors, names: await view.namesOf(ids.filter((id) => id !== null)) };
}

/** The groupings whose values are ids of objects that have names. */
const namedGroups: ReadonlySet<UsageGroup> = new Set(["account", "key", "app"]);
const maxRefusals = 1_000;

function hourOf(at: number): number {
  return at - (at % hour);
}

async function usageOf(
  { reports }: OverviewRouteDeps,
  owner: View["owner"],
  { range, group_by: by }: Asked,
  now: number,
): Promise<Slow["usage"]> {
  const { bucket, step, count } = ranges[range];
  const start = now - (now % step) - (count - 1) * step;
  const steps: Steps = { start, step, count };
  const query: UsageQuery = { ...owner, start, end: start + count * step, bucket, groupBy: [] };
  const total = await stepSums(reports, query, steps);
  const part = (bucket === "hour" ? hour : day) / partsOfBucket;
  const before = await sumsUntil(
    reports,
    { ...query, start: start - count * step, end: start },
    now - (now % part) - count * step,
  );
  const ranked = by === undefined ? noGroups : await rankedGroups(reports, query, by, steps);
  const isQuiet = total.all.requests === 0 && before.requests === 0;
  const year = { ...query, bucket: "month", start: now - 365 * day, end: now + 1 } as const;
  return {
    ...{
      start,
      step,
      sum: { ...figuresToWire(total.all), percentiles: timesToWire(total.all.times) },
      before: figuresToWire(before),
    },
    is_new: isQuiet && (await sumsUntil(reports, year, now + 1)).requests === 0,
    total: total.toWire(),
    groups: ranked.groups.map(({ id, sums }) => ({ id, ...sums.toWire() })),
    ranking: ranked.ranking,
    group_count: ranked.count,
  };
}

async function lastErrors(
  { requestHistory, retention }: OverviewRouteDeps,
  owner: View["owner"],
): Promise<Slow["errors"]> {
  const start = retention?.keptSince("requests") ?? 0;
  const filter = { ...owner, outcome: "failed", start, end: endOfTime } as const;
  const { requests } = await requestHistory.list(filter, { after: undefined, limit: shownErrors });
  return requests.map(({ requestId, at, model, keyId, errorCode }) => ({
    ...{ id: requestId, at, model: model ?? "", key: keyId, error_code: errorCode },
  }));
}

function withTag(body: string, known: string | null): PlainAnswer {
  const etag = weakTagOf(body);
  const headers = { "cache-control": "no-store", etag };
  if (isSameTag(known, etag)) return { status: 304, headers, body: "" };
  return { status: 200, headers: { ...headers, "content-type": "application/json" }, body };
}
