// The output of statements: JSON with the most expensive lines, or CSV with all lines.
import { z } from "zod";
import { usdText } from "../../../base/money.ts";
import { environments } from "../../../domain/api-key.ts";
import {
  type Statement,
  type StatementGroup,
  type StatementLine,
  type StatementSums,
  statementGroups,
} from "../../../domain/usage/statement.ts";
import { addedUp } from "../../../policy/records/statements.ts";
import { unixSeconds } from "../../../wire/parts.ts";
import { csvLine } from "../../content/csv.ts";
import type { StatementNames } from "./statement-names.ts";

/** Maximum lines in JSON, as many as the page shows. */
export const maxLines = 1_000;
const digits = 9;

const figures = {
  requests: z.int(),
  prompt_tokens: z.int().describe("All input tokens, including cache reads and writes."),
  cached_tokens: z.int().describe("Input tokens read from a cache."),
  cache_write_tokens: z.int().describe("Input tokens written to a cache."),
  completion_tokens: z.int().describe("Number of output tokens, including reasoning."),
  reasoning_tokens: z.int().describe("Reasoning tokens of the output, as far as model servers report them."),
  total_tokens: z.int(),
  errors: z.int().describe("Number of failed requests."),
  unpriced_requests: z.int().describe("Number of requests to models without a price. No cost includes them."),
  cost: z.string().describe("USD with nine decimals. Lines and total add up exactly."),
} as const;

const figuresShape = z.object(figures);
const value = z.string().nullable().optional();

const lineShape = z
  .object({
    key: value.describe("Id of the credential, as in the usage by key, if `group_by` has it."),
    key_name: value.describe("Name of the credential. null if the caller may not see it."),
    person: value.describe("Id of the person. null for usage of the account's own keys."),
    person_name: value,
    model: value,
    app: value.describe("Id of the OAuth app. null for none."),
    app_name: value,
    tag: value.describe("null: requests without tags."),
    ...figures,
  })
  .meta({ id: "StatementLine" });

const statementMembers = {
  object: z.literal("statement"),
  month: z.string().describe("Month, such as 2026-09."),
  start: unixSeconds,
  end: unixSeconds.describe("End in Unix seconds, not included. A request belongs to the month in which it began."),
  time_zone: z.literal("UTC"),
  created_at: unixSeconds,
  is_over: z.boolean().describe("True if the month has ended. Requests that still run then are added when they end."),
  installation: z.string().describe("URL of this server."),
  environment: z.enum(environments),
  currency: z.literal("USD"),
  unpriced_since: unixSeconds
    .nullable()
    .describe(
      "Start of the count of `unpriced_requests`, if the month begins earlier. null: they are counted for the whole month.",
    ),
} as const;

export const statementShape = z
  .object({
    ...statementMembers,
    account: z.object({ id: z.string(), name: z.string() }),
    of: z
      .object({
        key: value,
        key_name: value,
        person: value,
        person_name: value,
        app: value,
        app_name: value,
        tag: value,
      })
      .describe("Part of the account's usage that the statement covers, such as a member's own. Empty: all of it."),
    group_by: z.array(z.enum(statementGroups)),
    overlaps: z
      .boolean()
      .describe(
        "True if lines overlap, because they are by tag. A request with several tags is in the line of each, but only once in `total`.",
      ),
    lines: z.array(lineShape).describe(`The most expensive first, ${maxLines} at most. CSV has all.`),
    others: figuresShape
      .extend({ lines: z.int().nullable().describe("Number of these lines. null: too many to tell apart.") })
      .nullable()
      .describe("Sum of all lines that are not listed. null: all lines are listed."),
    total: figuresShape,
  })
  .meta({ id: "Statement" });

export const allAccountsShape = z
  .object({
    ...statementMembers,
    lines: z
      .array(z.object({ account: z.string(), account_name: z.string(), ...figures }))
      .describe("Accounts with usage, in the order of their creation."),
    organization: z
      .object({ id: z.string(), name: z.string() })
      .nullable()
      .describe("Covers the accounts of this organization. null: all accounts of the server."),
    total: figuresShape,
  })
  .meta({ id: "StatementOfAccounts" });

export type StatementWire = z.infer<typeof statementShape>;
export type AllAccountsWire = z.infer<typeof allAccountsShape>;
type LineWire = z.infer<typeof lineShape>;

export function sumsToWire(sums: StatementSums): z.infer<typeof figuresShape> {
  return {
    requests: sums.requests,
    prompt_tokens: sums.promptTokens,
    cached_tokens: sums.cachedTokens,
    cache_write_tokens: sums.cacheWriteTokens,
    completion_tokens: sums.completionTokens,
    reasoning_tokens: sums.reasoningTokens,
    total_tokens: sums.promptTokens + sums.completionTokens,
    errors: sums.errors,
    unpriced_requests: sums.unpriced,
    cost: usdText(sums.nanoUsd, digits),
  };
}

/** The groupings whose ids have names. */
const named = ["key", "person", "app"] as const satisfies readonly StatementGroup[];

/** Returns the ids of a line, with their names if known. */
export function groupsToWire(groups: StatementLine["groups"], names: StatementNames) {
  const wire: Pick<LineWire, StatementGroup | `${(typeof named)[number]}_name`> = {};
  for (const group of statementGroups) {
    const id = groups[group];
    if (id === undefined) continue;
    wire[group] = id;
    const name = named.find((one) => one === group);
    if (name) wire[`${name}_name`] = id === null ? null : names[name](id);
  }
  return wire;
}

/** Returns the lines for JSON. Lines beyond the maximum are summed up in one line. */
export function linesToWire(
  { lines, others }: Statement,
  names: StatementNames,
): Pick<StatementWire, "lines" | "others"> {
  const rest = lines.slice(maxLines);
  const together = addedUp([...rest, ...(others === null ? [] : [others])]);
  return {
    lines: lines.slice(0, maxLines).map((line) => ({ ...groupsToWire(line.groups, names), ...sumsToWire(line) })),
    others:
      rest.length === 0 && others === null
        ? null
        : { lines: others === null ? rest.length : null, ...sumsToWire(together) },
  };
}

type Head = Pick<StatementWire, "installation" | "environment" | "month" | "is_over" | "time_zone" | "currency">;

const headColumns = ["row", "installation", "environment", "month", "is_over", "time_zone"] as const;
/** Columns with the values of the filter, so that a filtered statement does not look complete. */
const partColumns = ["key", "person", "app", "tag"] as const;
const figureColumns = [...(Object.keys(figures) as (keyof typeof figures)[]), "currency"] as const;

function headCells(row: "line" | "others" | "total", head: Head): string[] {
  return [row, head.installation, head.environment, head.month, String(head.is_over), head.time_zone];
}

function figureCells(sums: StatementSums, { currency }: Head): (string | number)[] {
  const wire = sumsToWire(sums);
  return [...(Object.keys(figures) as (keyof typeof figures)[]).map((name) => wire[name]), currency];
}

/**
 * Yields all lines, then a row with the sum of the lines that were left out, then the total. The column `row` says
 * which kind a row is.
 */
export function* statementCsv(
  head: Head & Pick<StatementWire, "account" | "of" | "group_by" | "overlaps">,
  { lines, others, total }: Statement,
  names: StatementNames,
): Generator<string> {
  const groups = head.group_by.flatMap((group) => (isNamed(group) ? ([group, `${group}_name`] as const) : [group]));
  const account = [head.account.id, head.account.name, ...partColumns.map((part) => head.of[part] ?? null)];
  const accountColumns = ["account", "account_name", ...partColumns.map((part) => `of_${part}`), "overlaps"];
  yield csvLine([...headColumns, ...accountColumns, ...groups, ...figureColumns]);
  const lastCells = (row: "others" | "total", sums: StatementSums) => [
    ...headCells(row, head),
    ...account,
    // The total counts each request once, even if lines overlap.
    String(row === "others" && head.overlaps),
    ...groups.map(() => null),
    ...figureCells(sums, head),
  ];
  for (const line of lines) {
    const values = groupsToWire(line.groups, names);
    const cells = groups.map((group) => values[group] ?? null);
    yield csvLine([
      ...headCells("line", head),
      ...account,
      String(head.overlaps),
      ...cells,
      ...figureCells(line, head),
    ]);
  }
  if (others !== null) yield csvLine(lastCells("others", others));
  yield csvLine(lastCells("total", total));
}

function isNamed(group: StatementGroup): group is (typeof named)[number] {
  return named.some((one) => one === group);
}

export interface AccountLine {
  account: string;
  account_name: string;
  sums: StatementSums;
}

/** Yields all accounts' lines as CSV. Columns for the organization are included only if the statement covers one. */
export function* allAccountsCsv(
  head: Head & Pick<AllAccountsWire, "organization">,
  lines: readonly AccountLine[],
  total: StatementSums,
): Generator<string> {
  const { organization } = head;
  const filter = organization ? ["organization", "organization_name"] : [];
  const filterCells = organization ? [organization.id, organization.name] : [];
  yield csvLine([...headColumns, ...filter, "account", "account_name", ...figureColumns]);
  for (const { account, account_name: name, sums } of lines) {
    yield csvLine([...headCells("line", head), ...filterCells, account, name, ...figureCells(sums, head)]);
  }
  yield csvLine([...headCells("total", head), ...filterCells, null, null, ...figureCells(total, head)]);
}
