// The audit log of an account, for its owners and admins.
import { z } from "zod";
import { requireSeesAudit } from "../../../accounts/members.ts";
import type { AuditLog } from "../../../domain/audit.ts";
import type { PersonRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { auditQuery, eventList, eventsPage, shortPages } from "./audit-list.ts";
import { managingEndpoints } from "./people-endpoint.ts";

export interface AuditRouteDeps extends EndpointDeps {
  audit: Pick<AuditLog, "list" | "lastScannedId">;
}

const accountAuditQuery = z.object(auditQuery);

const endpoint = managingEndpoints<AuditRouteDeps>();

export function auditRoutes(deps: AuditRouteDeps): PersonRoute[] {
  return [list(deps)];
}

const list = endpoint("GET", "/v1/audit", {
  operationId: "listAccountAuditEvents",
  summary: "List the audit log of the account",
  description: `For owners and admins. Lists changes of the account and its keys, members and apps with their actor, issued tokens, and refused credentials. Newest first, in all environments. ${shortPages}`,
  query: accountAuditQuery,
  response: { description: "One page of events.", json: eventList },
  first: ({ principal }) => requireSeesAudit(principal, principal.account.id),
  answer: ({ deps: { audit }, principal, query }) => eventsPage(audit, principal.account.id, query),
});
