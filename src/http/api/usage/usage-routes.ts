// The endpoints for usage by time, model, key, environment and app: JSON in pages, or complete CSV.

import { z } from "zod";
import type { Clock } from "../../../base/clock.ts";
import { GatewayError } from "../../../base/errors.ts";
import { usdOf, usdText } from "../../../base/money.ts";
import type { KeyStore, Principal } from "../../../domain/principal.ts";
import {
  type Ledger,
  type UsageGroup,
  type UsageOutcome,
  type UsagePosition,
  type UsageQuery,
  type UsageReports,
  type UsageRow,
  usageOutcomes,
} from "../../../domain/usage/usage.ts";
import { requireKeyManager } from "../../../policy/manage/delegation.ts";
import { isHere } from "../../../policy/manage/manage-keys.ts";
import type { Retention } from "../../../policy/records/retention.ts";
import { unixSeconds } from "../../../wire/parts.ts";
import { csvLine, prefersCsv } from "../../content/csv.ts";
import { readQuery } from "../../content/query.ts";
import type { Answer, Exchange, RouteDoc, ScopedRoute } from "../../exchange/route.ts";
import { listInTurn } from "../list-turns.ts";
import { csvAnswer, variesByAccept } from "./csv-answer.ts";
import { firstTokenMs, rounded, shownSpeed, speed, timesShape, timesToWire } from "./speed-wire.ts";
import {
  accountUsageParameters,
  decodeCursor,
  encodeCursor,
  keyUsageParameters,
  maxRows,
  type UsageScope,
  usageParameters,
  usageQuery,
} from "./usage-query.ts";
import { writtenSoon } from "./written-soon.ts";

export interface UsageRouteDeps {
  reports: UsageReports;
  ledger: Pick<Ledger, "flush">;
  keys: Pick<KeyStore, "findChainById">;
  clock: Clock;
  /** Knows since when hourly sums are stored. */
  retention?: Pick<Retention, "keptSince">;
}

const usageRow = z
  .object({
    start: unixSeconds.describe("Start of the bucket in Unix seconds."),
    end: unixSeconds.describe("End of the bucket in Unix seconds."),
    model: z.string().optional().describe("Present if `group_by` has it."),
    key: z
      .string()
      .optional()
      .describe(
        "Id of the credential, if `group_by` has it: a key, `key_…`, a signed-in member, `mbr_…`, or the grant of an app, `grt_…`.",
      ),
    environment: z.string().optional().describe("Present if `group_by` has it."),
    app: z.string().nullable().optional().describe("Id of the OAuth app, if `group_by` has it. null for none."),
    tag: z
      .string()
      .nullable()
      .optional()
      .describe(
        "Tag, if `group_by` has it. null: requests without tags. A request with several tags is in the row of each, so these rows do not add up.",
      ),
    requests: z.int(),
    prompt_tokens: z.int(),
    cached_tokens: z.int().describe("Prompt tokens read from a cache."),
    cache_write_tokens: z.int().describe("Prompt tokens written to a cache."),
    completion_tokens: z.int(),
    reasoning_tokens: z.int().describe("Reasoning tokens of the answers, as far as model servers report them."),
    total_tokens: z.int(),
    cost: z.number().describe("Cost in USD. Requests to models without a price are free."),
    unpriced_requests: z.int().describe("Number of requests to models without a price, which `cost` does not include."),
    errors: z.int().describe("Number of failed requests."),
    first_token_ms: firstTokenMs.describe(
      "Mean milliseconds from a request to the first chunk of its answer, for answers streamed in several chunks. null: no such answers.",
    ),
    tokens_per_second: speed.describe(
      "Mean generation speed over all streamed tokens, without the first token of each answer. null: no such tokens.",
    ),
    percentiles: timesShape,
  })
  .meta({ id: "UsageRow" });

/** A row of the usage of all accounts, with the groupings that only operators get. */
const allUsageRow = usageRow
  .extend({
    account: z.string().optional().describe("Id of the account, if `group_by` has it."),
    organization: z
      .string()
      .nullable()
      .optional()
      .describe("Id of the organization that the account belongs to now, if `group_by` has it. null for none."),
    person: z
      .string()
      .nullable()
      .optional()
      .describe("Id of the person that the credential belongs to, if `group_by` has it. null for none."),
    upstream: z
      .string()
      .nullable()
      .optional()
      .describe("Model server that answered, if `group_by` has it. null: none did."),
    deployment: z
      .string()
      .nullable()
      .optional()
      .describe(
        "Model server that answered and the requested model, as `upstream/model`, if `group_by` has it. null: none did.",
      ),
    outcome: z.enum(usageOutcomes).optional().describe("Present if `group_by` has it."),
  })
  .meta({ id: "AllUsageRow" });

const usageReportShape = z.object({
  object: z.literal("list"),
  data: z.array(usageRow),
  next: z.string().nullable().describe("Send it as `cursor` to get the next page. null on the last page."),
  kept_since: unixSeconds
    .optional()
    .describe(
      "Start of the stored hourly sums in Unix seconds, if hours were requested and the requested time begins earlier. Daily sums are stored permanently.",
    ),
});
const usageReport = usageReportShape.meta({ id: "UsageReport" });

export const allUsageReport = usageReportShape
  .extend({
    data: z.array(allUsageRow),
    names: z
      .record(z.string(), z.string())
      .describe("Names of the accounts, organizations, credentials, people and apps above, by id."),
  })
  .meta({ id: "AllUsageReport" });

type WireRow = z.infer<typeof allUsageRow>;

export const usageDescription =
  "Covers the credential's own environment. Buckets without requests are omitted. With `Accept: text/csv` the answer is all " +
  "rows as CSV, with times in ISO 8601.";

/** The parts that all descriptions of usage reports have in common. */
export const usageDoc = {
  tag: "Usage",
  query: usageParameters,
  response: { description: "The report.", json: usageReport, contentTypes: ["text/csv"] },
} satisfies Partial<RouteDoc>;

export function usageRoutes(deps: UsageRouteDeps): ScopedRoute[] {
  return [
    {
      method: "GET",
      path: "/v1/usage",
      access: "usage:read",
      doc: {
        ...usageDoc,
        query: accountUsageParameters,
        operationId: "getUsage",
        summary: "Retrieve the usage of the account",
        description: `${usageDescription} A member sees only their own usage unless an owner allowed more, and an app sees its own.`,
      },
      handle: (exchange, principal) => answerUsage(deps, exchange, principal, {}, accountUsageParameters),
    },
    {
      method: "GET",
      path: "/v1/keys/:id/usage",
      access: "keys:manage",
      doc: {
        ...usageDoc,
        query: keyUsageParameters,
        operationId: "getKeyUsage",
        summary: "Retrieve the usage of one key",
        description: `${usageDescription} A member sees only the usage of their own keys.`,
        parameters: [
          { name: "id", in: "path", description: "Id of the key, or of another credential in the report by key." },
        ],
        errors: ["not_found", "permission_denied"],
      },
      async handle(exchange, principal) {
        const id = exchange.params["id"] ?? "";
        requireKeyManager(principal);
        // Only API keys have reports of their own. Usage of members and apps is in the report that is grouped by key.
        const key = (await deps.keys.findChainById(id))?.keys[0];
        if (key && isHere(principal, key))
          return answerUsage(deps, exchange, principal, { keyId: id }, keyUsageParameters);
        throw new GatewayError(
          "not_found",
          "There is no such key in this account and environment; `GET /v1/keys` lists them.",
        );
      },
    },
  ];
}

/** Answers with a usage report. `only` restricts it to one key or app. The caller must have checked access. */
export async function answerUsage(
  deps: Omit<UsageRouteDeps, "keys">,
  exchange: Exchange,
  principal: Principal,
  only: UsageScope = {},
  parameters: typeof usageParameters | typeof keyUsageParameters | typeof accountUsageParameters = usageParameters,
): Promise<Answer> {
  const asked = readQuery(parameters, exchange.req.target);
  return answerReport(deps, exchange, principal, asked, usageQuery(asked, principal, deps.clock.nowSeconds(), only));
}

/** Answers with the report for `query`, as JSON or CSV. `more` returns further members of the JSON. */
export async function answerReport(
  deps: Omit<UsageRouteDeps, "keys">,
  exchange: Exchange,
  principal: Principal,
  asked: { limit: number; cursor?: string | undefined },
  query: UsageQuery,
  more?: (rows: readonly UsageRow[]) => Promise<object>,
): Promise<Answer> {
  const { req } = exchange;
  const after = asked.cursor === undefined ? undefined : decodeCursor(query, asked.cursor);
  variesByAccept(exchange);
  await writtenSoon(deps.ledger);
  const reports: UsageReports = {
    report: (...of) => listInTurn(exchange, principal, () => deps.reports.report(...of)),
  };
  if (prefersCsv(req.headers.get("accept"))) return csvAnswer(exchange, csvOf(reports, query, after));
  // One extra row is read, because it shows whether there is another page.
  const rows = await reports.report(query, { after, limit: asked.limit + 1 });
  const page = rows.slice(0, asked.limit);
  const last = rows.length > asked.limit ? page.at(-1) : undefined;
  const keptSince = query.bucket === "hour" ? (deps.retention?.keptSince("hourly_usage") ?? null) : null;
  return Response.json({
    object: "list",
    data: page.map(toWire),
    next: last ? encodeCursor(query, last) : null,
    ...(keptSince !== null && query.start < keptSince ? { kept_since: keptSince } : {}),
    ...(await more?.(page)),
  });
}

/** Yields all rows as CSV, page by page, starting behind the position `after`. */
async function* csvOf(
  reports: UsageReports,
  query: UsageQuery,
  after: UsagePosition | undefined,
): AsyncGenerator<string> {
  let page = await reports.report(query, { after, limit: maxRows });
  yield csvLine(csvHeader(query.groupBy)) + csvRows(query, page);
  while (page.length === maxRows) {
    page = await reports.report(query, { after: page.at(-1), limit: maxRows });
    yield csvRows(query, page);
  }
}

function csvRows({ groupBy }: UsageQuery, page: readonly UsageRow[]): string {
  return page.map((row) => csvLine(csvCells(groupBy, row))).join("");
}

function toWire(row: UsageRow): WireRow {
  const { model, key, environment, app, tag, account, organization, person, upstream, deployment, outcome } =
    row.groups;
  return {
    start: row.start,
    end: row.end,
    ...(model == null ? {} : { model }),
    ...(key == null ? {} : { key }),
    ...(environment == null ? {} : { environment }),
    ...(app === undefined ? {} : { app }),
    ...(tag === undefined ? {} : { tag }),
    ...(account == null ? {} : { account }),
    ...(organization === undefined ? {} : { organization }),
    ...(person === undefined ? {} : { person }),
    ...(upstream === undefined ? {} : { upstream }),
    ...(deployment === undefined ? {} : { deployment }),
    ...(outcome == null ? {} : { outcome: outcome as UsageOutcome }),
    requests: row.requests,
    prompt_tokens: row.promptTokens,
    cached_tokens: row.cachedTokens,
    cache_write_tokens: row.cacheWriteTokens,
    completion_tokens: row.completionTokens,
    reasoning_tokens: row.reasoningTokens,
    total_tokens: row.promptTokens + row.completionTokens,
    cost: usdOf(row.nanoUsd),
    unpriced_requests: row.unpriced,
    errors: row.errors,
    first_token_ms: meanFirstTokenMs(row),
    tokens_per_second: shownSpeed(row.generatedTokens, row.generationMs),
    percentiles: timesToWire(row.times),
  };
}

function meanFirstTokenMs({ timed, firstTokenMs: sum }: UsageRow): number | null {
  return timed === 0 ? null : rounded(sum / timed);
}

function csvHeader(groupBy: readonly UsageGroup[]): string[] {
  const sums = ["requests", "prompt_tokens", "completion_tokens", "total_tokens", "cost", "errors"];
  const parts = ["cached_tokens", "cache_write_tokens", "reasoning_tokens", "unpriced_requests"];
  const times = ["first_token", "total"].flatMap((of) => ["p50", "p95", "p99"].map((name) => `${of}_${name}_ms`));
  return ["start", "end", ...groupBy, ...sums, "first_token_ms", "tokens_per_second", ...parts, ...times];
}

function csvCells(groupBy: readonly UsageGroup[], row: UsageRow): (string | number | null)[] {
  const times = timesToWire(row.times);
  return [
    isoTime(row.start),
    isoTime(row.end),
    ...groupBy.map((group) => row.groups[group] ?? null),
    row.requests,
    row.promptTokens,
    row.completionTokens,
    row.promptTokens + row.completionTokens,
    usdText(row.exactNanoUsd),
    row.errors,
    meanFirstTokenMs(row),
    shownSpeed(row.generatedTokens, row.generationMs),
    row.cachedTokens,
    row.cacheWriteTokens,
    row.reasoningTokens,
    row.unpriced,
    ...[times?.first_token_ms, times?.total_ms].flatMap((of) => [of?.p50 ?? null, of?.p95 ?? null, of?.p99 ?? null]),
  ];
}

function isoTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(".000", "");
}
