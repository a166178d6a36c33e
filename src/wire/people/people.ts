// Schemas of people, their sessions, members of accounts and invitations, and of the requests about them.
import { z } from "zod";
import { usdOf } from "../../base/money.ts";
import { environments } from "../../domain/api-key.ts";
import type { Member, OneTimeLink, Person } from "../../domain/people/person.ts";
import { roles } from "../../domain/people/role.ts";
import type { Session } from "../../domain/people/session.ts";
import { scopes } from "../../domain/scope.ts";
import type { PersonUsage } from "../../domain/usage/people-usage.ts";
import { deletedShape, unixSeconds } from "../parts.ts";
import { givenQuotas, rulesOnWire, shownQuotas, usedQuotas } from "../quotas.ts";
import { givenTools, shownTools } from "../tools/tool-lists.ts";

const personName = z.string().min(1).max(100).describe("Display name, in printable characters.");
const email = z.string().min(3).max(254).describe("E-mail address, compared without regard to case.");
const role = z
  .enum(roles)
  .describe(
    "`member`: has their own keys, apps and chats. `admin`: manages all keys, apps and members of the account. `owner`: also manages owners and admins.",
  );
const seesAllUsage = z
  .boolean()
  .describe(
    "True if a member sees the usage and requests of the whole account, but no prompts or answers. Owners and admins always do.",
  );
const password = z.string().min(1).max(256);

const accountName = { id: z.string(), name: z.string() } as const;

export const sessionShape = z
  .object({
    object: z.literal("session"),
    person: z.object({ id: z.string(), email: z.string(), name: z.string(), is_operator: z.boolean() }),
    account: z.object(accountName).describe("Account of the requests."),
    role,
    environment: z.enum(environments),
    scopes: z.array(z.enum(scopes)),
    session_id: z.string().nullable().describe("Id of the browser session. null for a token of `headrace login`."),
    csrf_token: z
      .string()
      .nullable()
      .describe("Value to send as `X-CSRF-Token` with every request that changes data. Only for a browser session."),
    has_password: z
      .boolean()
      .nullable()
      .describe(
        "True if the person has a password. A password change then requires it. null for a token of `headrace login`.",
      ),
    accounts: z
      .array(z.object({ ...accountName, role, status: z.enum(["active", "suspended"]), membership_id: z.string() }))
      .describe("All accounts of which the person is a member."),
  })
  .meta({ id: "Session" });
export type SessionWire = z.infer<typeof sessionShape>;

export const updateSessionRequest = z
  .object({
    account_id: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe("Account to switch to, one of `accounts`. Only in a browser session."),
    name: personName.optional().describe("New display name of the person."),
  })
  .meta({ id: "UpdateSessionRequest", description: "Omitted members keep their values." });

export const changePasswordRequest = z
  .object({
    current_password: password.nullish().describe("Current password. Omit it if you have none yet."),
    new_password: password.describe("12 to 256 characters."),
  })
  .meta({ id: "ChangePasswordRequest" });

export const changedPassword = z
  .object({ object: z.literal("password"), changed: z.literal(true) })
  .meta({ id: "ChangedPassword" });

export const browserSessionShape = z
  .object({
    object: z.literal("browser_session"),
    id: z.string(),
    current: z.boolean().describe("True if this is the session of the request."),
    method: z.enum(["password", "passkey", "sso", "link"]).describe("Method by which the person signed in."),
    user_agent: z.string().describe("Name of the browser."),
    client_address: z.string().describe("Last address of the browser."),
    created_at: unixSeconds,
    last_seen_at: unixSeconds,
    expires_at: unixSeconds.describe("Latest end of the session. An unused session ends earlier."),
  })
  .meta({ id: "BrowserSession" });

export const endedSession = deletedShape("browser_session", "EndedBrowserSession");

export const endedSessions = z
  .object({ object: z.literal("browser_session.deleted"), deleted: z.int().describe("Number of sessions that ended.") })
  .meta({ id: "EndedBrowserSessions" });

const personUsageShape = z
  .object({
    spend: z
      .number()
      .describe(
        "Cost in USD since the start of this calendar month (UTC), in the environment of the request, of the person's logins, own keys and allowed apps.",
      ),
    last_used_at: unixSeconds
      .nullable()
      .describe("Last use of the person's logins, own keys and allowed apps, in any environment. null: never."),
  })
  .meta({ id: "PersonUsage" });
export type PersonUsageWire = z.infer<typeof personUsageShape>;

const memberMembers = {
  object: z.literal("member"),
  id: z.string(),
  person_id: z.string(),
  email: z.string(),
  name: z.string(),
  role,
  quotas: shownQuotas.describe(
    "Quotas per window, in each environment, for the person and for everything that they create as a member.",
  ),
  tools: shownTools,
  sees_all_usage: seesAllUsage,
  created_at: unixSeconds,
  last_seen_at: unixSeconds.nullable().describe("Last use of this server in a browser. null: no recent use."),
} as const;

export const memberShape = z
  .object({
    ...memberMembers,
    usage: personUsageShape.optional().describe("Usage in this account. Only in a list with `include=usage`."),
  })
  .meta({ id: "Member" });
export const memberDetailsShape = z
  .object({
    ...memberMembers,
    quotas_used: usedQuotas.describe("Usage of each of `quotas` in the requested environment."),
  })
  .meta({ id: "MemberDetails" });

export const updateMemberRequest = z
  .object({
    role: role.optional(),
    quotas: givenQuotas.nullish(),
    tools: givenTools.nullish(),
    sees_all_usage: seesAllUsage.optional(),
  })
  .meta({
    id: "UpdateMemberRequest",
    description: "Omitted members keep their values. null clears the quotas or the list of tools.",
  });

export const removedMember = deletedShape("member", "RemovedMember");

const invitationMembers = {
  object: z.literal("invitation"),
  id: z.string(),
  email: z.string(),
  role,
  created_by: z.string().nullable().describe("Id of the person or key that sent the invitation. null for the console."),
  created_at: unixSeconds,
  expires_at: unixSeconds,
} as const;

export const invitationShape = z.object(invitationMembers).meta({ id: "Invitation" });
export const createdInvitationShape = z
  .object({
    ...invitationMembers,
    link: z
      .string()
      .nullable()
      .describe(
        "Link that works once, for anyone who has it. It is shown only in this response and is not stored. null if it was mailed.",
      ),
    mailed: z.boolean().describe("True if the invitation was sent by mail. Otherwise pass the link on yourself."),
  })
  .meta({ id: "CreatedInvitation" });

export const createInvitationRequest = z
  .object({ email, role: role.optional().describe("Default `member`.") })
  .meta({ id: "CreateInvitationRequest" });

export const deletedInvitation = deletedShape("invitation", "DeletedInvitation");

const personMembers = {
  object: z.literal("person"),
  id: z.string(),
  email: z.string(),
  name: z.string(),
  is_operator: z
    .boolean()
    .describe("True if the person can operate the installation (`admin:manage`) while signed in to a browser."),
  suspended_at: unixSeconds
    .nullable()
    .describe("Time when an operator suspended the person. null: the person is not suspended."),
  created_at: unixSeconds,
} as const;

export const personShape = z
  .object({
    ...personMembers,
    usage: personUsageShape.optional().describe("Usage in all accounts. Only in a list with `include=usage`."),
  })
  .meta({ id: "Person" });
export const personDetailsShape = z
  .object({
    ...personMembers,
    memberships: z.array(
      z.object({ id: z.string(), account_id: z.string(), account_name: z.string(), role, created_at: unixSeconds }),
    ),
  })
  .meta({ id: "PersonDetails" });
export type PersonDetailsWire = z.infer<typeof personDetailsShape>;

export const updatePersonRequest = z.object({ is_operator: z.boolean() }).meta({ id: "UpdatePersonRequest" });

export const deletedPerson = deletedShape("person", "DeletedPerson");

export const resetLinkShape = z
  .object({
    object: z.literal("reset_link"),
    person_id: z.string(),
    link: z
      .string()
      .describe(
        "Link to set a new password. It works once, for anyone who has it. It is shown only in this response and is not stored.",
      ),
    expires_at: unixSeconds,
  })
  .meta({ id: "ResetLink" });

export function browserSessionToWire(session: Session, currentId: string | null): z.infer<typeof browserSessionShape> {
  return {
    object: "browser_session",
    id: session.id,
    current: session.id === currentId,
    method: session.method,
    user_agent: session.userAgent,
    client_address: session.clientAddress,
    created_at: session.createdAt,
    last_seen_at: session.lastSeenAt,
    expires_at: session.expiresAt,
  };
}

export function memberToWire(member: Member): z.infer<typeof memberShape> {
  return {
    object: "member",
    id: member.id,
    person_id: member.personId,
    email: member.email,
    name: member.name,
    role: member.role,
    quotas: rulesOnWire(member.quotas ?? []),
    tools: member.tools ? [...member.tools] : null,
    sees_all_usage: member.seesAllUsage,
    created_at: member.createdAt,
    last_seen_at: member.lastSeenAt,
  };
}

/** Undefined stands for a person without credentials. */
export function personUsageToWire(usage: PersonUsage | undefined): PersonUsageWire {
  return { spend: usdOf(usage?.nanoUsd ?? 0), last_used_at: usage?.lastUsedAt ?? null };
}

export function invitationToWire(link: OneTimeLink): z.infer<typeof invitationShape> {
  return {
    object: "invitation",
    id: link.id,
    email: link.email ?? "",
    role: link.role ?? "member",
    created_by: link.createdBy,
    created_at: link.createdAt,
    expires_at: link.expiresAt,
  };
}

export function personToWire(person: Person): z.infer<typeof personShape> {
  return {
    object: "person",
    id: person.id,
    email: person.email,
    name: person.name,
    is_operator: person.isOperator,
    suspended_at: person.suspendedAt,
    created_at: person.createdAt,
  };
}
