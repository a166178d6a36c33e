// The shapes of people, their sessions, members of accounts and invitations on the wire, and of the requests about them.
import { z } from "zod";
import { environments } from "../../domain/api-key.ts";
import type { Member, OneTimeLink, Person } from "../../domain/people/person.ts";
import { roles } from "../../domain/people/role.ts";
import type { Session } from "../../domain/people/session.ts";
import { scopes } from "../../domain/scope.ts";
import { deletedShape, unixSeconds } from "../parts.ts";
import { givenQuotas, rulesOnWire, shownQuotas, usedQuotas } from "../quotas.ts";
import { givenTools, shownTools } from "../tools/tool-lists.ts";

const personName = z.string().min(1).max(100).describe("As others see it; printable characters.");
const email = z.string().min(3).max(254).describe("E-mail address. Case does not matter.");
const role = z
  .enum(roles)
  .describe(
    "`member`: has keys, apps and chats of their own; `admin`: manages all of the account's; `owner`: its owners and admins as well.",
  );
const seesAllUsage = z
  .boolean()
  .describe(
    "Whether a member sees the usage and requests of the whole account, never what was asked or answered. Owners and admins do in any case.",
  );
const password = z.string().min(1).max(256);

const accountName = { id: z.string(), name: z.string() } as const;

export const sessionShape = z
  .object({
    object: z.literal("session"),
    person: z.object({ id: z.string(), email: z.string(), name: z.string(), is_operator: z.boolean() }),
    account: z.object(accountName).describe("The account that requests are for."),
    role,
    environment: z.enum(environments),
    scopes: z.array(z.enum(scopes)),
    session_id: z.string().nullable().describe("The session of a browser; null for a token of `headrace login`."),
    csrf_token: z
      .string()
      .nullable()
      .describe("To be sent as `X-CSRF-Token` with everything that changes something; only for a browser's session."),
    has_password: z
      .boolean()
      .nullable()
      .describe("Whether the person has one, which changing it asks for; null for a token of `headrace login`."),
    accounts: z
      .array(z.object({ ...accountName, role, status: z.enum(["active", "suspended"]), membership_id: z.string() }))
      .describe("All that the person is a member of."),
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
      .describe("The account to look at from now on, one of `accounts`. Only in a browser's session."),
    name: personName.optional().describe("Another name of the person."),
  })
  .meta({ id: "UpdateSessionRequest", description: "What is left out stays as it is." });

export const changePasswordRequest = z
  .object({
    current_password: password.nullish().describe("Left out by whoever has none yet."),
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
    current: z.boolean().describe("Whether the request itself comes from it."),
    method: z.enum(["password", "passkey", "sso", "link"]).describe("How the person signed in."),
    user_agent: z.string().describe("What the browser called itself."),
    client_address: z.string().describe("Where it was last seen from."),
    created_at: unixSeconds,
    last_seen_at: unixSeconds,
    expires_at: unixSeconds.describe("Whatever is done in it; unused, it ends sooner."),
  })
  .meta({ id: "BrowserSession" });

export const endedSession = deletedShape("browser_session", "EndedBrowserSession");

export const endedSessions = z
  .object({ object: z.literal("browser_session.deleted"), deleted: z.int().describe("How many ended.") })
  .meta({ id: "EndedBrowserSessions" });

const memberMembers = {
  object: z.literal("member"),
  id: z.string(),
  person_id: z.string(),
  email: z.string(),
  name: z.string(),
  role,
  quotas: shownQuotas.describe(
    "Quotas per window, in each environment, of what the person does and makes as a member.",
  ),
  tools: shownTools,
  sees_all_usage: seesAllUsage,
  created_at: unixSeconds,
  last_seen_at: unixSeconds.nullable().describe("When a browser of theirs was last used here; null: not lately."),
} as const;

export const memberShape = z.object(memberMembers).meta({ id: "Member" });
export const memberDetailsShape = z
  .object({
    ...memberMembers,
    quotas_used: usedQuotas.describe("What was used of each of `quotas` in the environment that is asked for."),
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
    description: "What is left out stays as it is; null clears the quotas, and the list of tools.",
  });

export const removedMember = deletedShape("member", "RemovedMember");

const invitationMembers = {
  object: z.literal("invitation"),
  id: z.string(),
  email: z.string(),
  role,
  created_by: z.string().nullable().describe("Id of the person or key that invited; null for the console."),
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
      .describe("Works once, for whoever has it. It is shown this once and not kept; null where it was mailed."),
    mailed: z.boolean().describe("Whether it was sent by mail; otherwise hand the link over yourself."),
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
  is_operator: z.boolean().describe("May operate the installation, `admin:manage`, while signed in at a browser."),
  created_at: unixSeconds,
} as const;

export const personShape = z.object(personMembers).meta({ id: "Person" });
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
    link: z.string().describe("Lets whoever has it set another password, once. It is shown this once and not kept."),
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
    created_at: person.createdAt,
  };
}
