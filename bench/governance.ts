// The features that are switched on while Headrace is measured, and whether its ledger has every request: a benchmark
// that loses usage is void.
import { until } from "./child.ts";
import { price } from "./headrace-config.ts";
import type { MockUpstream } from "./mock.ts";
import type { UpstreamCounters } from "./mock-upstream.ts";

/** The ledger's totals of an account, whatever the key and the model. */
export interface UsageTotals {
  requests: number;
  promptTokens: number;
  completionTokens: number;
  /** USD. */
  cost: number;
  errors: number;
}

/** Limits that are counted for every request and never reached. */
export const keyLimits = {
  rate_limit: 1_000_000,
  rate_limit_window: 10,
  monthly_tokens: 1_000_000_000_000,
  monthly_spend: 1_000_000,
};

/** Records reach the database a moment after the answer. */
const bookedWithinMs = 15_000;
const monthsSeconds = 60 * 86_400;

/** A key under the first one, with a rate limit and quotas of its own. */
export async function createGovernedKey(port: number, firstKey: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${firstKey}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "Benchmark", scopes: ["chat:write", "models:read", "tools:use"], ...keyLimits }),
  });
  if (!response.ok) throw new Error(`POST /v1/keys answered ${response.status}: ${await response.text()}`);
  return ((await response.json()) as { key: string }).key;
}

export async function bookedUsage(port: number, firstKey: string): Promise<UsageTotals> {
  const start = Math.floor(Date.now() / 1000) - monthsSeconds;
  const response = await fetch(`http://127.0.0.1:${port}/v1/usage?bucket=month&start=${start}`, {
    headers: { authorization: `Bearer ${firstKey}` },
  });
  if (!response.ok) throw new Error(`GET /v1/usage answered ${response.status}: ${await response.text()}`);
  const { data } = (await response.json()) as { data: Record<keyof UsageTotals | WireTokens, number>[] };
  const sum = (name: keyof UsageTotals | WireTokens) => data.reduce((total, row) => total + (row[name] ?? 0), 0);
  return {
    requests: sum("requests"),
    promptTokens: sum("prompt_tokens"),
    completionTokens: sum("completion_tokens"),
    cost: sum("cost"),
    errors: sum("errors"),
  };
}

type WireTokens = "prompt_tokens" | "completion_tokens";

/** The totals that the ledger should have, and those that it has: equal, or the run is void. */
export interface Audit {
  title: string;
  upstream: UpstreamCounters;
  booked: UsageTotals;
  faults: string[];
}

/**
 * Compares what was booked since `before` with what the upstream counted under `source`. Streams that their client left
 * are compared by number only (`tokens: false`).
 */
export async function audit(
  title: string,
  mock: Pick<MockUpstream, "counters">,
  source: string,
  booked: () => Promise<UsageTotals>,
  { before, tokens = true }: { before?: UsageTotals; tokens?: boolean } = {},
): Promise<Audit> {
  const none: UpstreamCounters = { requests: 0, streams: 0, promptTokens: 0, completionTokens: 0 };
  const upstream = (await mock.counters()).sources[source] ?? none;
  let since = difference(await booked(), before);
  await until(
    async () => {
      since = difference(await booked(), before);
      return since.requests >= upstream.requests || undefined;
    },
    "The ledger has every request",
    bookedWithinMs,
  ).catch(() => {});
  const expectedCost = (upstream.promptTokens * price.input + upstream.completionTokens * price.output) / 1e6;
  const faults: string[] = [];
  const compare = (what: string, expected: number, found: number) => {
    if (found !== expected) faults.push(`${title}: the ledger has ${found} ${what}, the upstream counted ${expected}`);
  };
  compare("requests", upstream.requests, since.requests);
  if (tokens) {
    compare("prompt tokens", upstream.promptTokens, since.promptTokens);
    compare("completion tokens", upstream.completionTokens, since.completionTokens);
    compare("millionths of a USD", Math.round(expectedCost * 1e6), Math.round(since.cost * 1e6));
  }
  compare("errors", 0, since.errors);
  return { title, upstream, booked: since, faults };
}

function difference(after: UsageTotals, before: UsageTotals | undefined): UsageTotals {
  if (!before) return after;
  return {
    requests: after.requests - before.requests,
    promptTokens: after.promptTokens - before.promptTokens,
    completionTokens: after.completionTokens - before.completionTokens,
    cost: after.cost - before.cost,
    errors: after.errors - before.errors,
  };
}
