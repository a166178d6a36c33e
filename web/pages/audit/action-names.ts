// The names of audit actions, in groups, for a select field.
import type { AuditEvent } from "../../api/types.ts";

export type AuditAction = AuditEvent["action"];

const groups: Readonly<Record<string, Partial<Record<AuditAction, string>>>> = {
  "API keys and tokens": {
    "key.created": "Key created",
    "key.updated": "Key changed",
    "key.rotated": "Key rotated",
    "key.rotation_set": "Key rotation scheduled",
    "key.rotation_due": "Key rotation due",
    "key.revoked": "Key revoked",
    "key.suspended": "Key suspended",
    "key.resumed": "Key resumed",
    "token.issued": "Token issued",
    "credential.refused": "Credential refused",
  },
  Members: {
    "invitation.created": "Invitation created",
    "invitation.deleted": "Invitation revoked",
    "member.added": "Member joined",
    "member.updated": "Member changed",
    "member.removed": "Member removed",
    "limit.requested": "More of a limit requested",
    "limit.granted": "Limit raised",
    "limit.refused": "Limit request refused",
  },
  Apps: {
    "app.created": "App created",
    "app.updated": "App changed",
    "app.secret_rotated": "App secret rotated",
    "app.suspended": "App suspended",
    "app.resumed": "App resumed",
    "app.deleted": "App deleted",
    "grant.created": "App allowed",
    "grant.refreshed": "App access renewed",
    "grant.limited": "App quotas changed",
    "grant.revoked": "App access ended",
    "grant.replayed": "App token reused",
    "device.approved": "Device approved",
    "device.denied": "Device denied",
  },
  Webhooks: {
    "webhook.created": "Webhook created",
    "webhook.updated": "Webhook changed",
    "webhook.secret_rotated": "Webhook secret replaced",
    "webhook.disabled": "Webhook disabled",
    "webhook.deleted": "Webhook deleted",
  },
  Tools: {
    "tool_connection.created": "Account connected at an MCP server",
    "tool_connection.broken": "Connected account stopped working",
    "tool_connection.deleted": "Connected account disconnected",
  },
  Account: {
    "account.created": "Account created",
    "account.updated": "Account changed",
    "account.end_users_changed": "Budget of end users changed",
    "organization.account_added": "Account added to an organization",
    "organization.account_removed": "Account removed from an organization",
  },
};

const groupsOfAll: typeof groups = {
  "Sign-in": {
    "session.started": "Signed in",
    "session.ended": "Signed out",
    "sign_in.failed": "Sign-in failed",
    "password.changed": "Password changed",
    "password_reset.created": "Password reset requested",
    "passkey.added": "Passkey added",
    "passkey.removed": "Passkey removed",
    "identity.linked": "Single sign-on linked",
    "setup_link.created": "Setup link created",
  },
  People: {
    "person.created": "Person created",
    "person.updated": "Person changed",
    "person.suspended": "Person suspended",
    "person.resumed": "Person resumed",
    "person.deleted": "Person deleted",
  },
  Installation: {
    "organization.created": "Organization created",
    "organization.updated": "Organization changed",
    "organization.deleted": "Organization deleted",
    "tier.changed": "Tier changed",
    "tier.deleted": "Tier deleted",
    "tool_server.created": "MCP server added",
    "tool_server.changed": "MCP server changed",
    "tool_server.deleted": "MCP server deleted",
    "tool.decided": "Tool approved or refused",
    "upstream.created": "Upstream added",
    "upstream.updated": "Upstream changed",
    "upstream.deleted": "Upstream removed",
    "model.created": "Model declared",
    "model.updated": "Model changed",
    "model.deleted": "Model declaration removed",
    "pulled_model.requested": "Model pull started",
    "pulled_model.deleted": "Pulled model deleted",
    "model_process.changed": "Model process loaded, stopped or pinned",
    "node.joined": "Node joined",
    "node.updated": "Node changed",
    "node.deleted": "Node removed",
    "node.connected": "Node connected",
    "node.disconnected": "Node disconnected",
    "node_token.created": "Join token created",
    "node_token.deleted": "Join token revoked",
    "replica.updated": "Replica changed",
    "documents.applied": "Files applied",
    "cache.cleared": "Response cache cleared",
    "request.viewed": "Request of an account viewed",
    "signing_key.created": "Signing key created",
    "signing_key.retired": "Signing key retired",
    "audit.purged": "Audit log purged",
  },
};

/** Returns the groups of actions; `isOfAll` adds the actions that concern no single account. */
export function actionGroups(isOfAll: boolean): { group: string; items: { value: string; label: string }[] }[] {
  return Object.entries(isOfAll ? { ...groups, ...groupsOfAll } : groups).map(([group, names]) => ({
    group,
    items: Object.entries(names).map(([value, label]) => ({ value, label })),
  }));
}

const all = new Map([...Object.values(groups), ...Object.values(groupsOfAll)].flatMap(Object.entries<string>));

export function isAction(text: string): boolean {
  return all.has(text);
}

/** Returns the name of an action; an action that this dashboard does not know yet keeps its API name. */
export function actionName(action: string): string {
  return all.get(action) ?? action;
}
