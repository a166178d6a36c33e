// The operators' view of the audit log.
import { z } from "zod";
import type { AuditLog } from "../../../domain/audit.ts";
import type { Principal } from "../../../domain/principal.ts";
import { readQuery } from "../../decode/query.ts";
import type { Exchange, ScopedRoute } from "../../exchange/route.ts";
import { auditId, auditQuery, eventList, eventsPage, shortPages } from "../people/audit-list.ts";
import { type AdminBaseDeps, type AdminDoc, adminRouter } from "./admin-route.ts";

export interface AdminAuditDeps extends AdminBaseDeps {
  audit: Pick<AuditLog, "list" | "reach">;
}

const adminAuditQuery = z.object({
  ...auditQuery,
  account: auditId.meta({ description: "the id of an account that it concerns" }),
});

export function adminAuditRoutes(deps: AdminAuditDeps): ScopedRoute[] {
  return [adminRouter(deps)("GET", "/v1/admin/audit", listDoc, list)];
}

const listDoc: AdminDoc = {
  operationId: "listAuditEvents",
  summary: "List the audit log",
  description: `Who changed which key, account, tier or signing key, which tokens were issued, and which credentials were refused. Newest first. ${shortPages}`,
  query: adminAuditQuery,
  response: { description: "One page of events.", json: eventList },
  errors: ["invalid_request"],
};

async function list({ req }: Exchange, _principal: Principal, { audit }: AdminAuditDeps): Promise<Response> {
  const { account, ...query } = readQuery(adminAuditQuery, req.target);
  return Response.json(await eventsPage(audit, account, query));
}
