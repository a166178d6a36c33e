// Turns audit events into sentences: the actor, the action, the target and the changes.
import { shortened } from "../../api/names.ts";
import type { AuditEvent } from "../../api/types.ts";
import { environmentNames } from "../../parts/words/environments.ts";
import { at, count, rate } from "../../parts/words/figures.ts";
import { type AuditAction, actionName } from "./action-names.ts";
import type { AuditNames } from "./audit-names.ts";

interface EventText {
  /** The actor, which begins the sentence. */
  who: string;
  /** The predicate, which begins with a verb. */
  did: string;
  /** The changes, or why the event happened; may be empty. */
  more: string;
}

type Detail = AuditEvent["detail"];

interface EventFacts {
  names: AuditNames;
  /** The target's name; empty if unknown. */
  target: string;
  detail: Detail;
  event: AuditEvent;
}

export function textOf(event: AuditEvent, names: AuditNames): EventText {
  const facts: EventFacts = { names, target: event.target_id ?? "", detail: event.detail, event };
  // A newer server may send actions that this page does not know.
  const phrase = (phrases as Partial<Record<string, Phrase>>)[event.action];
  const who = actorName(event.actor, names);
  if (!phrase) return { who, did: `did this: ${actionName(event.action)}`, more: "" };
  return { who, more: "", ...phrase(facts) };
}

function actorName({ type, id = "" }: AuditEvent["actor"], names: AuditNames): string {
  if (type === "person") return names.person(id);
  if (type === "key") return `The key ${names.key(id)}`;
  if (type === "app") return `The app ${names.app(id)}`;
  if (type === "operator") return "An operator at the console";
  return type === "system" ? "The server" : "An unknown person";
}

type Phrase = (facts: EventFacts) => Omit<EventText, "who" | "more"> & Partial<EventText>;

const text = (value: unknown) => (typeof value === "string" ? value : "");
const listed = (value: unknown) => (Array.isArray(value) ? value.map(String).join(", ") : "");

/** The key's name at the time of the event, else its current name. */
const keyOf = ({ names, target, detail }: EventFacts) =>
  target === "" ? "a key" : `the key ${text(detail["name"]) || names.key(target)}`;
const appOf = ({ names, target, detail }: EventFacts) =>
  `the app ${text(detail["app_name"]) || text(detail["name"]) || names.app(text(detail["app_id"]) || target)}`;
/** The member's current name, else the email address at the time of the event. */
const memberOf = ({ names, detail }: EventFacts) => {
  const id = text(detail["person_id"]);
  const name = names.person(id);
  return id !== "" && name !== shortened(id) ? name : text(detail["email"]) || name;
};
/** The node's name at the time of the event, else its current name. */
const nodeOf = ({ names, target, detail }: EventFacts) => text(detail["name"]) || names.node(target);
const serves = ({ detail }: EventFacts) => {
  const models = listed(detail["approved_models"]);
  return models === "" ? "" : `May serve: ${models === "*" ? "all models that it announces" : models}`;
};
const inEnvironment = ({ detail }: EventFacts) => {
  const environment = text(detail["environment"]);
  const names: Record<string, string> = environmentNames;
  return environment === "" ? "" : ` in ${names[environment] ?? environment}`;
};
const limitOf = ({ unit, per, owner }: Detail) =>
  `${text(unit)} per ${text(String(per))}${owner === "account" ? " of the account" : ""}`;
const scopesOf = ({ detail }: EventFacts) => {
  const scopes = listed(detail["scopes"]);
  return scopes === "" ? "" : `May: ${scopes}`;
};
const reasonOf = ({ detail }: EventFacts) =>
  reasons[text(detail["reason"])] ?? text(detail["reason"]).replaceAll("_", " ");
/**
 * Formats an event that summarizes similar events, which were not recorded one by one: their number for each reason.
 */
const unlisted = ({ detail }: EventFacts) => {
  const byReason = Object.entries((detail["reasons"] ?? {}) as Record<string, unknown>);
  return byReason
    .map(([reason, times]) => `${reasons[reason] ?? reason.replaceAll("_", " ")}: ${String(times)}`)
    .join("; ");
};

const priceIn = ({ price }: Detail) => {
  if (typeof price !== "object" || price === null) return "No price";
  const figures = Object.entries(price).map(([name, usd]) => `${name} ${rate(Number(usd))}`);
  return `${figures.join(", ")} per million tokens`;
};

const phrases: Record<AuditAction, Phrase> = {
  "key.created": (facts) => ({ did: `created ${keyOf(facts)}${inEnvironment(facts)}`, more: scopesOf(facts) }),
  "key.updated": (facts) => ({ did: `changed ${keyOf({ ...facts, detail: {} })}`, more: changesOf(facts.detail) }),
  "key.revoked": (facts) => ({ did: `revoked ${keyOf(facts)}` }),
  "key.rotated": (facts) => ({
    did: `rotated ${keyOf(facts)}`,
    more: typeof facts.detail["revoked_at"] === "number" ? `The old key ends ${at(facts.detail["revoked_at"])}` : "",
  }),
  "key.rotation_set": ({ detail }) => {
    const days = detail["every_days"];
    return typeof days === "number"
      ? { did: "scheduled the rotation of keys", more: `Every ${days} days` }
      : { did: "removed the schedule of key rotations" };
  },
  "key.rotation_due": (facts) => ({
    did: `ends ${keyOf(facts)}, as its rotation is scheduled`,
    more: typeof facts.detail["ends_at"] === "number" ? `The key ends ${at(facts.detail["ends_at"])}` : "",
  }),
  "key.suspended": (facts) => ({ did: `suspended ${keyOf(facts)}` }),
  "key.resumed": (facts) => ({ did: `resumed ${keyOf(facts)}` }),
  "token.issued": (facts) => ({
    did:
      facts.event.actor.id === facts.target ? "got an access token" : `got an access token made from ${keyOf(facts)}`,
    more: scopesOf(facts),
  }),
  "credential.refused": refusal,
  "account.created": ({ names, target, detail }) => ({
    did: `created the account ${text(detail["name"]) || names.account(target)}`,
    more: text(detail["tier"]) === "" ? "" : `Tier ${text(detail["tier"])}`,
  }),
  "account.updated": ({ names, target, detail }) => ({
    did: `changed the account ${names.account(target)}`,
    more: changesOf(detail),
  }),
  "account.end_users_changed": ({ detail }) => ({
    did:
      detail["end_user"] === "default"
        ? "changed the default budget of end users"
        : `changed the budget of the end user ${text(detail["end_user"])}`,
  }),
  "organization.created": ({ target, detail }) => ({
    did: `created the organization ${text(detail["name"]) || target}`,
  }),
  "organization.updated": ({ target, detail }) => ({
    did: `changed the organization ${target}`,
    more: changesOf(detail),
  }),
  "organization.deleted": ({ target, detail }) => ({
    did: `deleted the organization ${text(detail["name"]) || target}`,
  }),
  "organization.account_added": ({ names, target, detail }) => ({
    did: `put the account ${names.account(text(detail["account"]))} into the organization ${text(detail["name"]) || target}`,
  }),
  "organization.account_removed": ({ names, target, detail }) => ({
    did: `took the account ${names.account(text(detail["account"]))} out of the organization ${text(detail["name"]) || target}`,
  }),
  "tier.changed": ({ target, detail }) => ({ did: `changed the tier ${target}`, more: changesOf(detail) }),
  "tier.deleted": ({ target }) => ({ did: `deleted the tier ${target}` }),
  "tool.decided": ({ target, detail }) => ({
    did: `${detail["decision"] === "refused" ? "refused" : "approved"} a change to ${target}/${text(detail["name"])}`,
  }),
  "tool_server.created": ({ target, detail }) => ({
    did: `added the MCP server ${target}`,
    more: text(detail["url"]),
  }),
  "tool_server.changed": ({ target, detail }) => ({
    did: `changed the MCP server ${target}`,
    more: changesOf(detail),
  }),
  "tool_server.deleted": ({ target, detail }) => ({
    did: `removed the MCP server ${target}`,
    more: text(detail["url"]),
  }),
  "upstream.created": ({ target, detail }) => ({ did: `added the upstream ${target}`, more: text(detail["url"]) }),
  "upstream.updated": ({ target, detail }) => ({ did: `changed the upstream ${target}`, more: changesOf(detail) }),
  "upstream.deleted": ({ target, detail }) => ({ did: `removed the upstream ${target}`, more: text(detail["url"]) }),
  "model.created": ({ target, detail }) => ({ did: `declared the model ${target}`, more: priceIn(detail) }),
  "model.updated": ({ target, detail }) => ({ did: `changed the model ${target}`, more: changesOf(detail) }),
  "model.deleted": ({ target }) => ({ did: `removed the declaration of the model ${target}` }),
  "pulled_model.requested": ({ target, detail }) => ({
    did: `started to pull the model ${target}`,
    more: text(detail["source"]),
  }),
  "pulled_model.deleted": ({ target, detail }) => ({
    did: `deleted the files of the model ${target}`,
    more: text(detail["source"]),
  }),
  "model_process.changed": ({ target, detail }) => ({
    did: `changed the model process ${target}`,
    more: [
      ...(detail["loaded"] === undefined ? [] : [detail["loaded"] === true ? "loaded" : "stopped"]),
      ...(detail["pinned"] === undefined ? [] : [detail["pinned"] === true ? "pinned" : "not pinned"]),
    ].join(", "),
  }),
  "node.joined": (facts) => ({
    who: `The machine ${text(facts.detail["name"])}`,
    did: "joined as a node",
    more: serves(facts),
  }),
  "node.updated": (facts) => ({ did: `changed the node ${nodeOf(facts)}`, more: changesOf(facts.detail) }),
  "node.deleted": (facts) => ({ did: `removed the node ${nodeOf(facts)}` }),
  "node.connected": connection,
  "node.disconnected": connection,
  "node_token.created": (facts) => ({ did: "created a join token for a node", more: serves(facts) }),
  "node_token.deleted": ({ target }) => ({ did: `revoked the join token ${shortened(target)}` }),
  "replica.updated": ({ target, detail }) => ({
    did: `changed the replica ${shortened(target)}`,
    more: changesOf(detail),
  }),
  "documents.applied": ({ target, detail }) => ({
    did: `applied files${target === "" ? "" : ` of ${target}`}`,
    more: Object.entries(detail)
      .map(([action, names]) => `${action}: ${listed(names)}`)
      .join("; "),
  }),
  "cache.cleared": ({ detail }) => ({
    did: "cleared the response cache",
    more: typeof detail["model"] === "string" ? `Only the model ${detail["model"]}` : "",
  }),
  "request.viewed": ({ target }) => ({ did: `viewed the request ${target} of the account` }),
  "signing_key.created": () => ({ did: "created a signing key" }),
  "signing_key.retired": (facts) => ({
    did: facts.detail["revoked"] === true ? "revoked a signing key" : "retired a signing key",
  }),
  "audit.purged": (facts) => ({
    did: "deleted old events of this log",
    more: typeof facts.detail["before"] === "number" ? `Events before ${at(facts.detail["before"])}` : "",
  }),
  "person.created": (facts) => ({
    who: memberOf(facts),
    did: "signed up",
    more: text(facts.detail["by"]) === "setup_link" ? "By the setup link, as an operator" : "",
  }),
  "person.updated": ({ names, target, detail }) => ({
    did: `changed the person ${names.person(target)}`,
    more: changesOf(detail),
  }),
  "person.deleted": (facts) => ({ did: `deleted the person ${memberOf(facts)}` }),
  "person.suspended": (facts) => ({ did: `suspended the person ${memberOf(facts)}` }),
  "person.resumed": (facts) => ({ did: `resumed the person ${memberOf(facts)}` }),
  "member.added": (facts) => ({
    who: memberOf(facts),
    did: `joined ${facts.names.account(facts.event.account_id ?? "")} as ${text(facts.detail["role"])}`,
    more: text(facts.detail["invited_by"]) === "" ? "" : `Invited by ${inviter(facts)}`,
  }),
  "member.updated": (facts) => ({
    did:
      "quotas" in facts.detail ? `changed the quotas of ${memberOf(facts)}` : `changed the role of ${memberOf(facts)}`,
    more: changesOf(facts.detail),
  }),
  "limit.requested": ({ detail }) => ({ did: `asked for more ${limitOf(detail)}` }),
  "limit.granted": ({ detail }) => ({
    did: `granted ${text(String(detail["amount"] ?? ""))} more ${limitOf(detail)}`,
    more: typeof detail["until"] === "number" ? `Until ${at(detail["until"])}` : "",
  }),
  "limit.refused": ({ detail }) => ({ did: `refused or ended more ${limitOf(detail)}` }),
  "member.removed": (facts) =>
    facts.detail["left"] === true
      ? { did: "left the account" }
      : { did: `removed ${memberOf(facts)} from the account`, more: `Was ${text(facts.detail["role"])}` },
  "invitation.created": (facts) => ({ did: `invited ${memberOf(facts)} as ${text(facts.detail["role"])}` }),
  "invitation.deleted": (facts) => ({ did: `revoked the invitation for ${memberOf(facts)}` }),
  "setup_link.created": () => ({ did: "created a setup link for an operator" }),
  "password_reset.created": ({ names, target }) => ({ did: `requested a new password for ${names.person(target)}` }),
  "password.changed": (facts) => ({
    did: "changed the password",
    more: text(facts.detail["by"]) === "link" ? `For ${facts.names.person(facts.target)}, through a link` : "",
  }),
  "session.started": ({ detail }) => ({ did: "signed in", more: method(detail) }),
  "session.ended": (facts) => ({
    did: facts.detail["all_but"] === undefined ? "ended a sign-in" : "signed out everywhere else",
    more: reasonOf(facts),
  }),
  "sign_in.failed": failedSignIn,
  "passkey.added": ({ detail }) => ({ did: `added the passkey ${text(detail["name"])}` }),
  "passkey.removed": ({ detail }) => ({ did: `removed the passkey ${text(detail["name"])}` }),
  "identity.linked": ({ detail }) => ({ did: "linked a single sign-on", more: text(detail["issuer"]) }),
  "app.created": (facts) => ({ did: `created ${appOf(facts)}${inEnvironment(facts)}` }),
  "app.updated": (facts) => ({ did: `changed ${appOf({ ...facts, detail: {} })}`, more: changesOf(facts.detail) }),
  "app.secret_rotated": (facts) => ({ did: `rotated the secret of ${appOf(facts)}` }),
  "app.suspended": (facts) => ({ did: `suspended ${appOf(facts)}` }),
  "app.resumed": (facts) => ({ did: `resumed ${appOf(facts)}` }),
  "webhook.created": ({ detail }) => ({ did: "created a webhook", more: text(detail["url"]) }),
  "webhook.updated": ({ target, detail }) => ({ did: `changed the webhook ${target}`, more: changesOf(detail) }),
  "webhook.secret_rotated": ({ target }) => ({ did: `replaced the secret of the webhook ${target}` }),
  "webhook.disabled": ({ target }) => ({
    did: `disabled the webhook ${target}`,
    more: "The receiver answered with status 410",
  }),
  "webhook.deleted": ({ detail }) => ({ did: "deleted a webhook", more: text(detail["url"]) }),
  "tool_connection.created": ({ detail }) => ({
    did: `connected their account at the MCP server ${text(detail["server"])}`,
  }),
  "tool_connection.broken": ({ detail }) => ({
    did: `noticed that a connected account at the MCP server ${text(detail["server"])} stopped working`,
  }),
  "tool_connection.deleted": ({ detail }) => ({
    did: `disconnected their account at the MCP server ${text(detail["server"])}`,
  }),
  "app.deleted": (facts) => ({ did: `deleted ${appOf(facts)}` }),
  "grant.created": (facts) => ({
    who: allower(facts),
    did: `allowed ${appOf(facts)}${inEnvironment(facts)}`,
    more: scopesOf(facts),
  }),
  "grant.refreshed": () => ({ did: "renewed its access" }),
  "grant.replayed": (facts) => ({
    did: "sent a token that was already used, so its access was revoked",
    more: reasonOf(facts),
  }),
  "grant.limited": (facts) => ({ did: `changed the quotas of ${appOf(facts)}`, more: changesOf(facts.detail) }),
  "grant.revoked": (facts) => ({ did: `revoked the access of ${appOf(facts)}`, more: reasonOf(facts) }),
  "device.approved": (facts) => ({ did: `approved a device for ${appOf(facts)}${inEnvironment(facts)}` }),
  "device.denied": (facts) => ({ did: `denied a device for ${appOf(facts)}${inEnvironment(facts)}` }),
};

function refusal(facts: EventFacts) {
  const { target, detail, names } = facts;
  if (detail["reason"] === "suppressed") {
    return {
      did: `refused ${count(Number(detail["suppressed"]))} more credentials, not listed individually`,
      more: unlisted(facts),
    };
  }
  const who =
    target === "" ? "A credential" : target.startsWith("key_") ? `The key ${names.key(target)}` : names.key(target);
  return { who, did: "was refused", more: reasonOf(facts) };
}

function connection(facts: EventFacts) {
  const { event, detail } = facts;
  if (detail["reason"] === "suppressed") {
    return {
      did: `counted ${count(Number(detail["suppressed"]))} more connection changes of nodes, not listed individually`,
      more: "",
    };
  }
  const did = event.action === "node.connected" ? "connected" : "lost its connection";
  return { who: `The node ${nodeOf(facts)}`, did, more: endings[Number(detail["code"])] ?? "" };
}

/** The reasons why a tunnel ended, by WebSocket close code. */
const endings: Record<number, string> = {
  1000: "The connection was closed normally",
  1001: "The server or the node was stopped",
  1006: "The connection broke or timed out",
  4409: "The node connected again",
};

function failedSignIn(facts: EventFacts) {
  const { target, detail, names } = facts;
  if (detail["reason"] === "suppressed") {
    return {
      did: `counted ${count(Number(detail["suppressed"]))} more failed sign-ins, not listed individually`,
      more: unlisted(facts),
    };
  }
  return { did: `failed to sign in${target === "" ? "" : ` as ${names.person(target)}`}`, more: reasonOf(facts) };
}

function inviter({ names, detail }: EventFacts): string {
  const id = text(detail["invited_by"]);
  return id.startsWith("key_") ? `the key ${names.key(id)}` : names.person(id);
}

function allower({ names, detail }: EventFacts): string {
  const id = text(detail["person_id"]);
  return id === "" ? "A person" : names.person(id);
}

function method(detail: Detail): string {
  const names: Record<string, string> = { password: "By password", passkey: "By passkey", sso: "By single sign-on" };
  const said = text(detail["method"]);
  return names[said] ?? said.replaceAll("_", " ");
}

const reasons: Record<string, string> = {
  unknown: "Unknown key",
  malformed: "Not a key or token",
  missing: "No credential was sent",
  revoked: "Revoked",
  expired: "Expired",
  ancestor_revoked: "The key that created it was revoked",
  ancestor_expired: "The key that created it has expired",
  address: "The client address is not allowed",
  environment: "It belongs to another environment",
  dev_key_in_production: "A development key does not work in production",
  dev_key_not_local: "A development key works only on this machine",
  two_credentials: "Two different credentials were sent",
  no_member: "The person is no longer a member",
  unknown_email: "Unknown e-mail address",
  wrong_password: "Wrong password",
  no_password: "The person has no password",
  throttled: "Too many attempts",
  ended_by_person: "",
  by_app: "The app revoked its own access",
};

/** Returns `name: before → after` for each changed member of an event's details; other members are left out. */
export function changesOf(detail: Detail): string {
  return Object.entries(detail)
    .flatMap(([name, value]) => {
      if (typeof value !== "object" || value === null || !("before" in value && "after" in value)) return [];
      return [`${name.replaceAll("_", " ")}: ${shown(name, value.before)} → ${shown(name, value.after)}`];
    })
    .join("; ");
}

function shown(name: string, value: unknown): string {
  if (value === null || value === undefined) return "none";
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.map((one) => shown("", one)).join(", ");
  if (typeof value === "boolean") return value ? "yes" : "no";
  // A price is shown with all of its digits.
  if (typeof value === "number" && !Number.isInteger(value)) return String(value);
  if (typeof value === "number") return name.endsWith("_at") ? at(value) : count(value);
  if (typeof value !== "object") return String(value);
  const members = Object.entries(value).map(([member, one]) => `${member} ${shown(member, one)}`);
  return `(${members.join(", ")})`;
}
