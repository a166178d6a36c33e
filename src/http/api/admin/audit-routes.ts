// The operators' endpoint for the audit log.
import { z } from "zod";
import type { AuditLog } from "../../../domain/audit.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { auditId, auditQuery, eventList, eventsPage, shortPages } from "../people/audit-list.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminAuditDeps extends EndpointDeps {
  audit: Pick<AuditLog, "list" | "lastScannedId">;
}

const adminAuditQuery = z.object({
  ...auditQuery,
  account: auditId.meta({ description: "the id of an account that the event concerns" }),
});

const endpoint = adminEndpoints<AdminAuditDeps>();

export function adminAuditRoutes(deps: AdminAuditDeps): ScopedRoute[] {
  return [list(deps)];
}

const list = endpoint("GET", "/v1/admin/audit", {
  operationId: "listAuditEvents",
  summary: "List the audit log",
  description: `Changes of keys, accounts, tiers and signing keys with their actor, issued tokens, and refused credentials. Newest first. ${shortPages}`,
  query: adminAuditQuery,
  response: { description: "One page of events.", json: eventList },
  answer: ({ deps: { audit }, query: { account, ...query } }) => eventsPage(audit, account, query),
});
