// The audit events of grants: the app and the person, never a token.
import type { AuditEvent } from "../../domain/audit.ts";
import type { ApiKeyRecord } from "../../domain/principal.ts";
import { auditEvent } from "../../policy/records/audit.ts";
import type { ClientRequest } from "./stage.ts";

type Request = Pick<ClientRequest, "client" | "origin">;

export function created({ client, origin }: Request, grant: ApiKeyRecord, by: string): AuditEvent {
  const { id, accountId, personId, environment, scopes, tools } = grant;
  const detail = { by, app_id: client.id, app_name: client.name, person_id: personId, environment, scopes, tools };
  return auditEvent("grant.created", actor(client), origin, { accountId, targetId: id, detail });
}

export function refreshed({ client, origin }: Request, grant: ApiKeyRecord, scopes: readonly string[]): AuditEvent {
  const about = { accountId: grant.accountId, targetId: grant.id, detail: { app_id: client.id, scopes } };
  return auditEvent("grant.refreshed", actor(client), origin, about);
}

/** Returns the event of a replayed code or token. `grantId` is null if the store looks up the grant. */
export function replayed(
  { client, origin }: Request,
  { accountId, grantId }: { accountId: string; grantId: string | null },
  reason: string,
): AuditEvent {
  const about = { accountId, targetId: grantId, detail: { app_id: client.id, reason } };
  return auditEvent("grant.replayed", actor(client), origin, about);
}

export function revoked({ client, origin }: Request, grant: ApiKeyRecord): AuditEvent {
  const about = { accountId: grant.accountId, targetId: grant.id, detail: { app_id: client.id, reason: "by_app" } };
  return auditEvent("grant.revoked", actor(client), origin, about);
}

function actor({ id }: { id: string }) {
  return { type: "app", id } as const;
}
