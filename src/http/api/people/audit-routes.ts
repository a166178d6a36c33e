// What an account's owners and admins see of the audit log: all that concerns the account.
import { z } from "zod";
import { requireSeesAudit } from "../../../accounts/members.ts";
import type { AuditLog } from "../../../domain/audit.ts";
import { readQuery } from "../../decode/query.ts";
import type { Exchange, PersonPrincipal, PersonRoute } from "../../exchange/route.ts";
import { auditQuery, eventList, eventsPage, shortPages } from "./audit-list.ts";
import { managingRouter, type PeopleDoc } from "./people-route.ts";

export interface AuditRouteDeps {
  audit: Pick<AuditLog, "list" | "reach">;
}

const accountAuditQuery = z.object(auditQuery);

export function auditRoutes(deps: AuditRouteDeps): PersonRoute[] {
  return [managingRouter(deps)("GET", "/v1/audit", listDoc, list)];
}

const listDoc: PeopleDoc = {
  operationId: "listAccountAuditEvents",
  summary: "List the audit log of the account",
  description: `For its owners and admins. Who changed which key, member or app of the account, or the account itself, which tokens were issued, and which of its credentials were refused. Newest first, in all environments. ${shortPages}`,
  query: accountAuditQuery,
  response: { description: "One page of events.", json: eventList },
  errors: ["invalid_request", "permission_denied"],
};

async function list({ req }: Exchange, principal: PersonPrincipal, { audit }: AuditRouteDeps): Promise<Response> {
  requireSeesAudit(principal, principal.account.id);
  return Response.json(await eventsPage(audit, principal.account.id, readQuery(accountAuditQuery, req.target)));
}
