// The JSON, filters and paging of audit events, for every endpoint that lists them.
import { z } from "zod";
import { invalidRequest } from "../../../base/errors.ts";
import { type AuditEvent, type AuditFilter, type AuditLog, auditActions } from "../../../domain/audit.ts";
import { unixSeconds } from "../../../wire/parts.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";
import { time, timeText } from "../usage/usage-query.ts";

export const auditId = z.string().min(1).max(200).optional();

/** Query parameters of lists of audit events. Each endpoint adds them to its own parameters. */
export const auditQuery = {
  ...pageQuery,
  action: z
    .enum(auditActions)
    .optional()
    .meta({ description: `one of ${auditActions.join(", ")}` }),
  target: auditId.meta({
    description:
      "the id of the changed object, such as a key, account, member, app or signing key, or the name of a tier",
  }),
  start: time.optional().meta({ description: `${timeText}; only later events are listed, including this time` }),
  end: time.optional().meta({ description: `${timeText}; only earlier events are listed` }),
};

const eventShape = z
  .object({
    object: z.literal("audit_event"),
    id: z.string(),
    at: unixSeconds,
    action: z.enum(auditActions),
    actor: z
      .object({ type: z.enum(["key", "person", "app", "operator", "system", "anonymous"]), id: z.string().optional() })
      .describe(
        "`key`: the API key with this id, or an access token made from it. `person`: a signed-in person. `app`: an OAuth client. `operator`: a user with access to the data directory. `system`: the server itself. `anonymous`: an unknown caller, as at a failed sign-in.",
      ),
    account_id: z.string().nullable().describe("Account that the event concerns. null: none or unknown."),
    target_id: z
      .string()
      .nullable()
      .describe("Changed object: the id of a key, account, member or similar, or a tier."),
    client_address: z.string().nullable(),
    request_id: z.string().nullable(),
    detail: z
      .record(z.string(), z.unknown())
      .describe("Details of the change, or reason of a refusal. Never contains a secret."),
  })
  .meta({ id: "AuditEvent" });

export const eventList = listOf(eventShape, "AuditEventList");

interface AuditPageQuery {
  limit: number;
  after?: string | undefined;
  action?: AuditFilter["action"] | undefined;
  target?: string | undefined;
  start?: number | undefined;
  end?: number | undefined;
}

/** A text for endpoint descriptions: it explains why a page may be short. */
export const shortPages =
  "With several filters, or with `start` or `end`, a page may have fewer entries than `limit`, or none, if many events were read without a match. `has_more` says whether more remain, and `last_id` where to continue.";

/**
 * Returns one page of audit events of the account, or of all accounts if it is undefined. A filtered page may have few
 * events, because only some events are checked for a page. `last_id` is the last event that was checked. Throws
 * `invalid_request` for an empty period.
 */
export async function eventsPage(
  audit: Pick<AuditLog, "list" | "lastScannedId">,
  accountId: string | undefined,
  { limit, after, action, target, start, end }: AuditPageQuery,
): Promise<z.infer<typeof eventList>> {
  if (start !== undefined && end !== undefined && start >= end) {
    throw invalidRequest(`start: must be before end (got ${start} and ${end}, in Unix seconds).`);
  }
  const filter = {
    ...(accountId === undefined ? {} : { accountId }),
    ...(action === undefined ? {} : { action }),
    ...(target === undefined ? {} : { targetId: target }),
    ...(start === undefined ? {} : { start }),
    ...(end === undefined ? {} : { end }),
  };
  const downTo = await audit.lastScannedId(filter, after);
  const events = await audit.list(filter, { after, downTo, limit: limit + 1 });
  const page = pageOf(events.map(eventToWire), limit);
  return downTo === undefined || page.has_more ? page : { ...page, last_id: downTo, has_more: true };
}

export function eventToWire(event: AuditEvent): z.infer<typeof eventShape> {
  return {
    object: "audit_event",
    id: event.id,
    at: event.at,
    action: event.action,
    actor: event.actor,
    account_id: event.accountId,
    target_id: event.targetId,
    client_address: event.clientAddress,
    request_id: event.requestId,
    detail: { ...event.detail },
  };
}
