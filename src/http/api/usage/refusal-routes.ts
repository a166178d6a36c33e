// The endpoint for the number of requests that were refused by limits or for lack of capacity, by hour.
import { z } from "zod";
import { invalidRequest, refusalReasons } from "../../../base/errors.ts";
import type { RefusalCount, RefusalQuery, RefusalStore } from "../../../domain/limits/refusal.ts";
import { bucketEnd, bucketStart } from "../../../domain/usage/usage-bucket.ts";
import type { RefusalCounts } from "../../../policy/records/refusal-counts.ts";
import { unixSeconds } from "../../../wire/parts.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import { type EndpointDeps, scopedEndpoints } from "../endpoint.ts";
import { wholeListOf } from "../list.ts";
import { listInTurn } from "../list-turns.ts";
import { usageOwnerOf } from "./usage-owner.ts";
import { shown, time, timeText } from "./usage-query.ts";
import { writtenSoon } from "./written-soon.ts";

export interface RefusalRouteDeps extends EndpointDeps {
  refusalStore: Pick<RefusalStore, "list">;
  refusalCounts: Pick<RefusalCounts, "flush">;
}

const daySeconds = 86_400;
const defaultDays = 7;
const maxDays = 366;
export const maxRows = 1000;

export const refusalQuery = z.object({
  start: time.optional().meta({
    description: `${timeText}; rounded down to a whole hour, by default ${defaultDays} days before \`end\``,
  }),
  end: time.optional().meta({ description: `${timeText}; not included, rounded up to a whole hour, by default now` }),
});

export const refusalShape = z
  .object({
    object: z.literal("refusal"),
    start: unixSeconds.describe("Start of the hour in Unix seconds."),
    key: z
      .string()
      .nullable()
      .describe(
        "Id of the credential, as in the usage by key. null together with `model`: too many at once to tell them apart.",
      ),
    app: z.string().nullable().describe("Id of the OAuth app. null for none."),
    model: z.string().nullable(),
    reason: z
      .enum(refusalReasons)
      .describe(
        "Reached limit: a rate limit of requests or tokens or a monthly quota, with its owner. `capacity`: no model server had a free slot in time.",
      ),
    requests: z.int(),
    last_at: unixSeconds.describe("Time of the last refusal in Unix seconds."),
  })
  .meta({ id: "Refusal" });

const refusalList = wholeListOf(refusalShape, "RefusalList");

const endpoint = scopedEndpoints<RefusalRouteDeps>("usage:read", { tag: "Usage" });

export function refusalRoutes(deps: RefusalRouteDeps): ScopedRoute[] {
  return [list(deps)];
}

const list = endpoint("GET", "/v1/refusals", {
  operationId: "listRefusals",
  summary: "List the requests refused by limits",
  description:
    `Requests for models that were refused because of a rate limit, a quota or missing capacity, by hour, newest first, at most ${maxRows} rows. ` +
    "Covers the credential's own environment. As in the usage, a member sees only their own requests, and an app its own. Refused requests are not part of the usage.",
  query: refusalQuery,
  response: { description: "The counts.", json: refusalList },
  async answer({ deps, exchange, principal, query }) {
    const asked = { ...usageOwnerOf(principal), ...hoursOf(query, deps.clock.nowSeconds()) };
    await writtenSoon(deps.refusalCounts);
    const counts = await listInTurn(exchange, principal, () => deps.refusalStore.list(asked, maxRows));
    return { object: "list", data: counts.map(toWire) };
  },
});

/** Returns the requested period, extended to whole hours. */
export function hoursOf(asked: z.output<typeof refusalQuery>, nowSeconds: number): Pick<RefusalQuery, "start" | "end"> {
  const end = asked.end ?? nowSeconds + 1;
  const start = asked.start ?? Math.max(0, end - defaultDays * daySeconds);
  const got = `(got ${shown(start)} and ${shown(end)})`;
  if (start >= end) {
    const now = asked.end === undefined ? ", which is now by default" : "";
    throw invalidRequest(`start: must be before end${now} ${got}.`);
  }
  if (end - start > maxDays * daySeconds) {
    throw invalidRequest(`start: must be at most ${maxDays} days before end ${got}.`);
  }
  return {
    start: bucketStart("hour", start),
    end: bucketEnd("hour", end - 1),
  };
}

export function toWire(count: RefusalCount): z.infer<typeof refusalShape> {
  return {
    object: "refusal",
    start: count.start,
    key: count.keyId,
    app: count.appId,
    model: count.model,
    reason: count.reason,
    requests: count.requests,
    last_at: count.lastAt,
  };
}

/** Returns one line for each reason, the most frequent first. Each names the key and model refused most often. */
export function refusalsByReason(counts: readonly RefusalCount[]) {
  return [...Map.groupBy(counts, ({ reason }) => reason)]
    .map(([reason, all]) => {
      const byKeyAndModel = [...Map.groupBy(all, ({ keyId, model }) => `${keyId} ${model}`).values()];
      const [most] = byKeyAndModel.toSorted((one, other) => sumOf(other) - sumOf(one))[0] ?? [];
      const last_at = Math.max(...all.map(({ lastAt }) => lastAt));
      return { reason, requests: sumOf(all), last_at, key: most?.keyId ?? null, model: most?.model ?? null };
    })
    .sort((one, other) => other.requests - one.requests);
}

function sumOf(counts: readonly RefusalCount[]): number {
  return counts.reduce((sum, { requests }) => sum + requests, 0);
}
