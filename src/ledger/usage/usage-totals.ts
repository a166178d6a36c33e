// Adds up usage over whole accounts and over all accounts, with counts of answers by their time. A report of an operator
// then reads as many rows as it shows, however many keys and requests there are.
import { timeStep, timeSteps } from "../../domain/usage/time-counts.ts";
import type { UsageGroup, UsageQuery } from "../../domain/usage/usage.ts";
import { at, durationMs, firstTokenMs, type UsageColumns } from "./usage-columns.ts";
import type { UsageKind } from "./usage-kinds.ts";
import { addUsage, rollupColumns, type SumColumns, type SumRow } from "./usage-sums.ts";

const firstTokens = Array.from({ length: timeSteps }, (_, step) => `first_${step}`);
const totals = Array.from({ length: timeSteps }, (_, step) => `total_${step}`);

export const totalsColumns = {
  key: ["account_id", "environment", "span", "kind", "start", "name", "model"],
  sums: [...rollupColumns.sums, ...firstTokens, ...totals],
  times: [],
} as const satisfies SumColumns;

const firstOfFirst = rollupColumns.sums.length;
const firstOfTotal = firstOfFirst + timeSteps;
const numbersOfRow = firstOfTotal + timeSteps;
const hourSeconds = 3_600;
const daySeconds = 86_400;

type TotalsKind = "all" | "account" | "model" | "upstream" | "deployment" | "outcome";

interface Total {
  accountId: string;
  environment: string;
  kind: TotalsKind;
  hour: number;
  name: string;
  model: string;
  numbers: Float64Array;
}

/** Returns the rows to add to `usage_totals` for these records. Each row occurs once. */
export function totalsOf(usage: UsageColumns): SumRow[] {
  const hours = new Map<string, Total>();
  for (const [kind, parts] of partsOf(usage)) {
    for (const { accountId, hour, numbers } of parts.values()) {
      for (const total of groupsOf(kind, accountId, hour)) addTo(shared(hours, total), numbers);
    }
  }
  const days = new Map<string, Total>();
  for (const total of hours.values()) {
    addTo(shared(days, { ...total, hour: total.hour - (total.hour % daySeconds) }), total.numbers);
  }
  return [...rowsOf("hour", hours), ...rowsOf("day", days)];
}

type Part = Pick<Total, "accountId" | "hour" | "numbers">;

/** Adds up the records of each kind by account and hour first, because most requests are of few kinds. */
function partsOf(usage: UsageColumns): Map<UsageKind, Map<string, Part>> {
  const parts = new Map<UsageKind, Map<string, Part>>();
  for (let row = 0; row < usage.length; row++) {
    const kind = usage.kindAt(row);
    const accountId = usage.accountIds[row] ?? "";
    const second = usage.number(row, at);
    const hour = second - (second % hourSeconds);
    let ofKind = parts.get(kind);
    if (!ofKind) {
      ofKind = new Map();
      parts.set(kind, ofKind);
    }
    const name = `${accountId} ${hour}`;
    let part = ofKind.get(name);
    if (!part) {
      part = { accountId, hour, numbers: new Float64Array(numbersOfRow) };
      ofKind.set(name, part);
    }
    const { numbers } = part;
    addUsage(numbers, 0, usage, row);
    const firstToken = usage.numberOrNull(row, firstTokenMs);
    if (firstToken !== null) increment(numbers, firstOfFirst + timeStep(firstToken));
    if (kind.outcome === "completed") increment(numbers, firstOfTotal + timeStep(usage.number(row, durationMs)));
  }
  return parts;
}

function increment(numbers: Float64Array, index: number): void {
  numbers[index] = (numbers[index] ?? 0) + 1;
}

function addTo({ numbers }: Total, more: Float64Array): void {
  for (let i = 0; i < numbersOfRow; i++) numbers[i] = (numbers[i] ?? 0) + (more[i] ?? 0);
}

/** Returns the totals with this key. If there are none yet, adds totals of zero. */
function shared(
  totals: Map<string, Total>,
  { accountId, environment, kind, hour, name, model }: Omit<Total, "numbers">,
) {
  const key = JSON.stringify([accountId, environment, kind, hour, name, model]);
  const known = totals.get(key);
  if (known) return known;
  const total: Total = { accountId, environment, kind, hour, name, model, numbers: new Float64Array(numbersOfRow) };
  totals.set(key, total);
  return total;
}

function groupsOf(
  { request, upstream, outcome }: UsageKind,
  accountId: string,
  hour: number,
): Omit<Total, "numbers">[] {
  const { environment, model } = request;
  const ofAll = (kind: TotalsKind, name: string, ofModel: string) => ({
    ...{ accountId: "", environment, kind, hour, name, model: ofModel },
  });
  return [
    { accountId, environment, kind: "model", hour, name: "", model },
    ofAll("all", "", ""),
    ofAll("account", accountId, ""),
    ofAll("model", "", model),
    ofAll("upstream", upstream ?? "", ""),
    ofAll("deployment", upstream ?? "", model),
    ofAll("outcome", outcome, ""),
  ];
}

function rowsOf(span: "hour" | "day", totals: ReadonlyMap<string, Total>): SumRow[] {
  return Array.from(totals.values(), ({ accountId, environment, kind, hour, name, model, numbers }) => [
    ...[accountId, environment, span, kind, hour, name, model],
    ...numbers,
  ]);
}

/** The SQL of each group. */
const groupColumns: Partial<Record<UsageGroup, string>> = {
  environment: "environment",
  account: "name",
  model: "model",
  upstream: "name",
  outcome: "name",
  deployment: "CASE WHEN name = '' THEN '' ELSE name || '/' || model END",
};

/** The kind of totals, by the columns that a query groups or filters by, separated by commas. */
const kinds: Readonly<Record<string, TotalsKind>> = {
  "": "all",
  account: "account",
  model: "model",
  upstream: "upstream",
  "model,upstream": "deployment",
  outcome: "outcome",
};

export interface TotalsSource {
  accountId: string;
  kind: TotalsKind;
  /** The required value of the column `name`; undefined if every value matches. */
  name: string | undefined;
  /** The SQL of each group of the query. */
  groups: string[];
}

/** Returns which rows of `usage_totals` answer the query; undefined if none do. */
export function totalsFor(query: UsageQuery): TotalsSource | undefined {
  const { accountId, organizationId, keyId, appId, personId, tag, model, upstream, outcome, bucket, groupBy } = query;
  const parts = [organizationId, keyId, appId, personId, tag];
  if (bucket === "minute" || parts.some((one) => one !== undefined)) return undefined;
  const groups = groupBy.map((group) => groupColumns[group]);
  if (!groups.every((group) => group !== undefined)) return undefined;
  const columns = new Set(groupBy.flatMap((group) => (group === "deployment" ? ["upstream", "model"] : [group])));
  columns.delete("environment");
  if (model !== undefined) columns.add("model");
  if (upstream !== undefined) columns.add("upstream");
  if (outcome !== undefined) columns.add("outcome");
  if (accountId === null) {
    const kind = kinds[[...columns].sort().join(",")];
    return kind && { accountId: "", kind, name: upstream ?? outcome, groups };
  }
  columns.delete("model");
  const isWhole = columns.size === 0;
  return isWhole ? { accountId, kind: "model", name: undefined, groups } : undefined;
}
