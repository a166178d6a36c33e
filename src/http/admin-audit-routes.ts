// The operators' view of the audit log.
import { z } from "zod";
import { type AuditEvent, type AuditLog, auditActions } from "../domain/audit.ts";
import { GatewayError } from "../domain/errors.ts";
import type { Principal } from "../domain/principal.ts";
import { unixSeconds } from "../domain/wire.ts";
import { type AdminBaseDeps, type AdminDoc, adminRouter } from "./admin-route.ts";
import { listOf, pageOf, pageQuery } from "./list.ts";
import { readQuery } from "./query.ts";
import type { Exchange, ScopedRoute } from "./route.ts";
import { time, timeText } from "./usage-query.ts";

export interface AdminAuditDeps extends AdminBaseDeps {
  audit: Pick<AuditLog, "list">;
}

const id = z.string().min(1).max(200).optional();
const auditQuery = z.object({
  ...pageQuery,
  account: id.meta({ description: "the id of an account that it concerns" }),
  action: z
    .enum(auditActions)
    .optional()
    .meta({ description: `one of ${auditActions.join(", ")}` }),
  target: id.meta({ description: "the id of a key, account or signing key, or the name of a tier" }),
  start: time.optional().meta({ description: `${timeText}; nothing before it` }),
  end: time.optional().meta({ description: `${timeText}; only what is before it` }),
});

const eventShape = z
  .object({
    object: z.literal("audit_event"),
    id: z.string(),
    at: unixSeconds,
    action: z.enum(auditActions),
    actor: z
      .object({ type: z.enum(["key", "person", "app", "operator", "system", "anonymous"]), id: z.string().optional() })
      .describe(
        "`key`: the API key with this id, or a token made from it; `person`: somebody signed in; `app`: an OAuth client; `operator`: whoever has the data directory; `system`: the server itself; `anonymous`: nobody known, as at a failed sign-in.",
      ),
    account_id: z.string().nullable().describe("The account that it concerns; null: none, or not known."),
    target_id: z.string().nullable().describe("What was changed: the id of a key, account or signing key, or a tier."),
    client_address: z.string().nullable(),
    request_id: z.string().nullable(),
    detail: z.record(z.string(), z.unknown()).describe("What changed, or why something was refused; never a secret."),
  })
  .meta({ id: "AuditEvent" });

const eventList = listOf(eventShape, "AuditEventList");

export function adminAuditRoutes(deps: AdminAuditDeps): ScopedRoute[] {
  return [adminRouter(deps)("GET", "/v1/admin/audit", listDoc, list)];
}

const listDoc: AdminDoc = {
  operationId: "listAuditEvents",
  summary: "List the audit log",
  description:
    "Who changed which key, account, tier or signing key, which tokens were issued, and which credentials were refused. Newest first.",
  query: auditQuery,
  response: { description: "One page of events.", json: eventList },
  errors: ["invalid_request"],
};

async function list({ req }: Exchange, _principal: Principal, { audit }: AdminAuditDeps): Promise<Response> {
  const { limit, after, account, action, target, start, end } = readQuery(auditQuery, req.target);
  if (start !== undefined && end !== undefined && start >= end) {
    throw new GatewayError("invalid_request", `start: must be before end (got ${start} and ${end}, in Unix seconds).`);
  }
  const filter = {
    ...(account === undefined ? {} : { accountId: account }),
    ...(action === undefined ? {} : { action }),
    ...(target === undefined ? {} : { targetId: target }),
    ...(start === undefined ? {} : { start }),
    ...(end === undefined ? {} : { end }),
  };
  const events = await audit.list(filter, { after, limit: limit + 1 });
  return Response.json(pageOf(events.map(eventToWire), limit));
}

function eventToWire(event: AuditEvent): z.infer<typeof eventShape> {
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
