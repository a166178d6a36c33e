// The query parameters of the usage report, and the cursor of its next page.
import { z } from "zod";
import { type GatewayError, invalidRequest } from "../../../base/errors.ts";
import type { Principal } from "../../../domain/principal.ts";
import {
  type UsageBucket,
  type UsageGroup,
  type UsagePosition,
  type UsageQuery,
  usageBuckets,
  usageGroups,
} from "../../../domain/usage/usage.ts";
import { bucketEnd, bucketStart } from "../../../domain/usage/usage-bucket.ts";
import { tag } from "../../../wire/tags.ts";
import { usageOwnerOf } from "./usage-owner.ts";

const daySeconds = 86_400;
const defaultDays = 30;
/** Minutes of the default period for sums by minute, which people watch live. */
const defaultMinutes = 5;
const maxDays: Record<UsageBucket, number> = { minute: 1, hour: 366, day: 3660, month: 3660 };
export const maxRows = 1000;

export const time = z.string().transform((text, context) => {
  const seconds = parseTime(text);
  if (seconds !== undefined) return seconds;
  context.addIssue({ code: "custom", message: "not a time" });
  return z.NEVER;
});

/**
 * The groupings for the publisher of an app. Tags are excluded, because they belong to the accounts that use the app.
 */
const publicGroups = usageGroups.filter((group) => group !== "tag");

export function groupList(known: readonly UsageGroup[]) {
  const list = z.string().transform((text, context): UsageGroup[] => {
    const names = text.split(",").map((name) => name.trim());
    const groups = names.filter((name) => known.some((group) => group === name)) as UsageGroup[];
    if (groups.length === names.length && new Set(names).size === names.length) return groups;
    context.addIssue({ code: "custom", message: "not a list of groups" });
    return z.NEVER;
  });
  return list.optional().meta({
    description: `one or several of ${known.join(", ")}, each once, separated by commas`,
  });
}

export const timeText =
  "Unix seconds or an ISO 8601 date or date and time, UTC unless it says otherwise, such as 2026-09-01";

export const usageParameters = z.object({
  start: time.optional().meta({
    description: `${timeText}; rounded down to a whole bucket, by default ${defaultDays} days before \`end\``,
  }),
  end: time.optional().meta({ description: `${timeText}; not included, rounded up to a whole bucket, by default now` }),
  bucket: z.enum(usageBuckets).default("day").meta({ description: "hour, day or month, in UTC" }),
  group_by: groupList(publicGroups),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(maxRows)
    .default(maxRows)
    .meta({
      description: `a whole number from 1 to ${maxRows}: the maximum number of rows of a page; CSV always has all rows`,
    }),
  model: z.string().min(1).max(256).optional().meta({ description: "the id of a model; only its usage counts" }),
  cursor: z
    .string()
    .max(8192)
    .optional()
    .meta({ description: "the `next` of the previous page, to get the next page" }),
});

/** Parameters of an account's own usage. */
export const keyUsageParameters = usageParameters.extend({
  group_by: groupList(usageGroups),
  tag: tag.optional().meta({ description: "a tag; only requests with it count" }),
});

/** Parameters of the report on a whole account. Only this report can be filtered by key or app. */
export const accountUsageParameters = keyUsageParameters.extend({
  key: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .meta({ description: "the id of a credential, as in the report by key; only its usage counts" }),
  app: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .meta({ description: "the id of an OAuth app; only usage through it counts" }),
});

/** Restricts a report to one key, or to the usage of one app by all accounts. */
export interface UsageScope {
  keyId?: string;
  publishedAppId?: string;
  /** The usage that an operator asks for. It replaces the caller's own usage. */
  forOperator?: Pick<UsageQuery, "accountId" | "organizationId" | "environment" | "personId" | "upstream" | "outcome">;
}

/** Returns the query for the usage that the caller may see, or for the part of it in `only`. */
export function usageQuery(
  asked: Omit<z.output<typeof usageParameters>, "bucket"> & { bucket: UsageBucket } & Partial<
      Pick<z.output<typeof accountUsageParameters>, "key" | "app" | "tag">
    >,
  principal: Principal,
  nowSeconds: number,
  only: UsageScope = {},
): UsageQuery {
  const { bucket } = asked;
  // `end` is excluded, so one second is added to include the current second.
  const end = asked.end ?? nowSeconds + 1;
  const defaultSeconds = bucket === "minute" ? defaultMinutes * 60 : defaultDays * daySeconds;
  const start = asked.start ?? Math.max(0, end - defaultSeconds);
  if (start >= end) {
    const now = asked.end === undefined ? ", which is now by default" : "";
    throw invalidRequest(`start: must be before end${now} (got ${shown(start)} and ${shown(end)}).`);
  }
  if (end - start > maxDays[bucket] * daySeconds) {
    throw invalidRequest(
      `start: must be at most ${maxDays[bucket]} ${maxDays[bucket] === 1 ? "day" : "days"} before end where bucket is ${bucket} (got ${shown(start)} and ${shown(end)}).`,
    );
  }
  if (principal.appId !== null && asked.app !== undefined && asked.app !== principal.appId) {
    throw invalidRequest("app: an app sees its own usage alone; leave it out.");
  }
  const { publishedAppId, forOperator, ...narrower } = only;
  const owner = { ...narrower, ...usageOwnerOf(principal) };
  const { environment } = owner;
  const whose =
    forOperator ?? (publishedAppId === undefined ? owner : { accountId: null, environment, appId: publishedAppId });
  return {
    ...(asked.model === undefined ? {} : { model: asked.model }),
    ...(asked.tag === undefined ? {} : { tag: asked.tag }),
    ...(asked.key === undefined ? {} : { keyId: asked.key }),
    ...(asked.app === undefined ? {} : { appId: asked.app }),
    ...whose,
    start: bucketStart(bucket, start),
    end: bucketEnd(bucket, end - 1),
    bucket,
    groupBy: asked.group_by ?? [],
  };
}

/** Encodes a row's position as a cursor. The cursor includes the bucket and grouping of its report. */
export function encodeCursor({ bucket, groupBy }: UsageQuery, { start, groups }: UsagePosition): string {
  const values = groupBy.map((group) => groups[group] ?? null);
  return Buffer.from(JSON.stringify([reportKind(bucket, groupBy), start, ...values])).toString("base64url");
}

/**
 * Decodes a cursor. Throws `invalid_request` if the cursor is invalid or belongs to a report with another bucket or
 * grouping.
 */
export function decodeCursor({ bucket, groupBy }: UsageQuery, cursor: string): UsagePosition {
  const [kind, at, ...values] = parseCursor(cursor);
  const start = z.int().min(0).max(lastSecond).safeParse(at).data;
  if (kind !== reportKind(bucket, groupBy) || values.length !== groupBy.length) throw badCursor();
  if (start === undefined || bucketStart(bucket, start) !== start) throw badCursor();
  const groups: UsagePosition["groups"] = {};
  for (const [index, group] of groupBy.entries()) {
    const value = values[index];
    if (typeof value !== "string" && !(value === null && mayBeNull.has(group))) throw badCursor();
    groups[group] = value;
  }
  return { start, groups };
}

const mayBeNull: ReadonlySet<UsageGroup> = new Set(["app", "tag", "organization", "person", "upstream", "deployment"]);

function parseCursor(cursor: string): unknown[] {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    return Array.isArray(parsed) ? parsed : [];
  } catch {
    return [];
  }
}

function badCursor(): GatewayError {
  return invalidRequest(
    "cursor: must be the `next` of a page with the same bucket and group_by; leave it out for the first page.",
  );
}

function reportKind(bucket: UsageBucket, groupBy: readonly UsageGroup[]): string {
  return [bucket, ...groupBy].join(" ");
}

/** The last second that ISO 8601 can write with a four-digit year. */
const lastSecond = Date.UTC(9999, 11, 31, 23, 59, 59) / 1000;
const isoTime = z.iso.datetime({ offset: true, local: true });

function parseTime(text: string): number | undefined {
  if (/^\d{1,12}$/.test(text)) return withinRange(Number(text));
  if (z.iso.date().safeParse(text).success) return withinRange(Date.parse(`${text}T00:00:00Z`) / 1000);
  // A `+` that was not percent-encoded arrives as a space.
  const iso = text.replace(/ (\d\d:?\d\d)$/, "+$1");
  if (!isoTime.safeParse(iso).success) return undefined;
  const zoned = /(Z|[+-]\d\d:?\d\d)$/.test(iso) ? iso : `${iso}Z`;
  return withinRange(Math.floor(Date.parse(zoned) / 1000));
}

function withinRange(seconds: number): number | undefined {
  return seconds >= 0 && seconds <= lastSecond ? seconds : undefined;
}

export function shown(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(".000", "");
}
