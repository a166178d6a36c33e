// The filters of the request list, and the cursor of its next page.
import { z } from "zod";
import { invalidRequest } from "../../../base/errors.ts";
import type { Principal } from "../../../domain/principal.ts";
import type { RequestPosition } from "../../../domain/usage/request-log.ts";
import type { HistoryFilter } from "../../../policy/records/request-history.ts";
import { tag } from "../../../wire/tags.ts";
import { requestOutcomes } from "./request-wire.ts";
import { usageOwnerOf } from "./usage-owner.ts";
import { time, timeText } from "./usage-query.ts";

const defaultLimit = 50;
const maxLimit = 200;
/** The start of the year 10000 in Unix seconds, later than every possible time. */
const endOfTime = 253_402_300_800;

const id = (what: string) => z.string().min(1).max(256).optional().meta({ description: what });

export const requestParameters = z.object({
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(maxLimit)
    .default(defaultLimit)
    .meta({ description: `a whole number from 1 to ${maxLimit}: the maximum number of requests` }),
  cursor: z.string().max(512).optional().meta({ description: "the `next` of the previous page, to get the next page" }),
  model: id("a model id; only its requests are listed"),
  key: id(
    "the id of a key, `key_…`, or of another credential that requests show as `key`; only its requests are listed",
  ),
  app: id("the id of an OAuth app, `app_…`; only its requests are listed"),
  tag: tag.optional().meta({
    description: "a tag; only requests with it are listed, without refused requests, which have no tags",
  }),
  outcome: z
    .enum(requestOutcomes)
    .optional()
    .meta({ description: `one of ${requestOutcomes.join(", ")}; only requests that ended so are listed` }),
  stream: z
    .stringbool({ truthy: ["true"], falsy: ["false"], case: "sensitive" })
    .optional()
    .meta({ description: "true or false; only requests with, or without, streaming are listed" }),
  start: time
    .optional()
    .meta({ description: `${timeText}; only requests that began at this time or later are listed` }),
  end: time.optional().meta({ description: `${timeText}; only requests that began earlier are listed` }),
});

/**
 * Returns the filter for the requests that the caller may see. Returns undefined if an app asks for another app's
 * requests, because the list is then empty.
 */
export function requestFilter(
  asked: z.output<typeof requestParameters>,
  principal: Principal,
): HistoryFilter | undefined {
  if (principal.appId !== null && asked.app !== undefined && asked.app !== principal.appId) return undefined;
  return { ...matching(asked), ...usageOwnerOf(principal) };
}

/** Returns the filter without the members that name the owner. */
export function matching(asked: z.output<typeof requestParameters>): Omit<HistoryFilter, "accountId" | "environment"> {
  const { model, key, app, tag: ofTag, outcome, stream, start = 0, end = endOfTime } = asked;
  if (start >= end) throw invalidRequest("start: must be before end.");
  return {
    ...(app === undefined ? {} : { appId: app }),
    ...(key === undefined ? {} : { keyId: key }),
    ...(model === undefined ? {} : { model }),
    ...(ofTag === undefined ? {} : { tag: ofTag }),
    ...(outcome === undefined ? {} : { outcome }),
    ...(stream === undefined ? {} : { stream }),
    start,
    end,
  };
}

const position = z.tuple([z.int().min(0).max(endOfTime), z.string().max(256)]);

/** Encodes a position in the list as a cursor. */
export function encodePosition({ at, requestId }: RequestPosition): string {
  return Buffer.from(JSON.stringify([at, requestId])).toString("base64url");
}

/** Decodes a cursor. Throws `invalid_request` if it is invalid. */
export function decodePosition(cursor: string): RequestPosition {
  const { success, data } = position.safeParse(parsed(cursor));
  if (success) return { at: data[0], requestId: data[1] };
  throw invalidRequest("cursor: must be the `next` of a page of this list; leave it out for the first page.");
}

function parsed(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, "base64url").toString());
  } catch {
    return undefined;
  }
}
