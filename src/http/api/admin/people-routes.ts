// The operators' endpoints for people, and for the members of any account.

import { z } from "zod";
import type { OneTimeLinks } from "../../../accounts/links.ts";
import { forbidden, GatewayError } from "../../../base/errors.ts";
import { shown } from "../../../base/text/shown.ts";
import type { AccountStore } from "../../../domain/account.ts";
import { normalizedEmail, type Person, type PersonStore } from "../../../domain/people/person.ts";
import type { KeyStore } from "../../../domain/principal.ts";
import type { KeptAnswers } from "../../../inference/cache/kept-answers.ts";
import type { ConnectFlow } from "../../../mcp/connections/connect-flow.ts";
import { auditEvent, type Origin } from "../../../policy/records/audit.ts";
import {
  createdInvitationShape,
  createInvitationRequest,
  deletedInvitation,
  deletedPerson,
  type PersonDetailsWire,
  personDetailsShape,
  personShape,
  personToWire,
  resetLinkShape,
  updatePersonRequest,
} from "../../../wire/people/people.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps, Named } from "../endpoint.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";
import {
  type InvitationRouteDeps,
  invitationList,
  invitationsPage,
  invite,
  withdraw,
} from "../people/invitation-routes.ts";
import { memberList, memberQuery, membersPage } from "../people/member-routes.ts";
import { includeUsage, type PeopleUsageDeps, withUsage } from "../people/people-usage.ts";
import { accountParameter, findAccount } from "./account-routes.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminPeopleDeps extends EndpointDeps, InvitationRouteDeps, PeopleUsageDeps {
  people: InvitationRouteDeps["people"] &
    Pick<PersonStore, "findPerson" | "findByEmail" | "listPeople" | "apply" | "deletePerson" | "membershipsOf"> &
    Pick<PersonStore, "listMembers">;
  links: Pick<OneTimeLinks, "invite" | "createReset">;
  accounts: Pick<AccountStore, "findAccount">;
  /** Called after a person was deleted, to clear caches of the person's credentials. */
  changed(ids?: readonly string[]): void;
  keys: Pick<KeyStore, "descendFrom">;
  keptAnswers: Pick<KeptAnswers, "forgetAccounts">;
  connectFlow: Pick<ConnectFlow, "farewell">;
}

const personParameter = [{ name: "id", in: "path", description: "Id of the person, `usr_…`." }] as const;
const invitationParameters = [
  ...accountParameter,
  { name: "invitation", in: "path", description: "Id of the invitation, `lnk_…`." },
] as const;
const personQuery = z.object({
  ...pageQuery,
  ...includeUsage,
  email: z
    .string()
    .min(3)
    .max(254)
    .optional()
    .meta({ description: "an e-mail address; only the person with this address is listed" }),
});
const personList = listOf(personShape, "PersonList");

const endpoint = adminEndpoints<AdminPeopleDeps>();

export function adminPeopleRoutes(deps: AdminPeopleDeps): ScopedRoute[] {
  const ofPeople = [list(deps), retrieve(deps), update(deps), remove(deps), suspend(deps), resume(deps), reset(deps)];
  return [...ofPeople, members(deps), invitations(deps), inviteInto(deps), withdrawFrom(deps)];
}

const list = endpoint("GET", "/v1/admin/people", {
  operationId: "listPeople",
  summary: "List the people who can sign in",
  description: "Oldest first.",
  query: personQuery,
  response: { description: "One page of people.", json: personList },
  async answer(asked) {
    const page = await peoplePage(asked.deps.people, asked.query);
    return withUsage(asked, page, null, ({ id }) => id);
  },
});

async function peoplePage(people: AdminPeopleDeps["people"], { limit, after, email }: z.output<typeof personQuery>) {
  if (email === undefined) {
    return pageOf((await people.listPeople({ after, limit: limit + 1 })).map(personToWire), limit);
  }
  const person = await people.findByEmail(normalizedEmail(email));
  return pageOf(person ? [personToWire(person)] : [], limit);
}

const retrieve = endpoint("GET", "/v1/admin/people/:id", {
  operationId: "retrievePerson",
  summary: "Retrieve one person, with their memberships of accounts",
  parameters: personParameter,
  response: { description: "The person.", json: personDetailsShape },
  answer: async ({ deps, id }) => detailsToWire(await find(id, deps), deps),
});

const update = endpoint("PATCH", "/v1/admin/people/:id", {
  operationId: "updatePerson",
  summary: "Make a person an operator, or revoke that",
  description:
    "The change applies immediately. You cannot revoke it from yourself or from the last operator. Keys with `admin:manage` that an operator created stay valid: revoke them separately.",
  parameters: personParameter,
  requestBody: updatePersonRequest,
  example: { is_operator: true },
  response: { description: "The person.", json: personDetailsShape },
  async answer({ deps, principal, id, body: { is_operator: isOperator }, origin }) {
    const person = await find(id, deps);
    if (person.isOperator === isOperator) return detailsToWire(person, deps);
    if (!isOperator && principal.person?.id === person.id) {
      throw forbidden("is_operator: nobody takes this from themselves; ask another operator.");
    }
    const event = auditEvent("person.updated", principal, origin, {
      ...{ accountId: null, targetId: person.id },
      detail: { is_operator: { before: person.isOperator, after: isOperator } },
    });
    const outcome = await deps.people.apply({ setOperator: { personId: person.id, isOperator } }, event);
    if (outcome === "done") return detailsToWire({ ...person, isOperator }, deps);
    if (outcome === "person_missing") throw unknown(person.id);
    throw forbidden("is_operator: this is the last operator; make somebody else one first.");
  },
});

const remove = endpoint("DELETE", "/v1/admin/people/:id", {
  operationId: "deletePerson",
  summary: "Delete a person",
  description:
    "Deletes memberships, sessions, passkeys and sign-ins. Keys that the person created as a member, their logins and apps that they allowed end, and the response cache of their accounts is cleared. Keys that they created as an owner or admin, and usage records, stay. First revoke the operator role, if the person has it. An account may remain without an owner: invite another by `POST /v1/admin/accounts/{id}/invitations`.",
  parameters: personParameter,
  response: { description: "The person is deleted.", json: deletedPerson },
  async answer({ deps, principal, id, origin }) {
    const person = await find(id, deps);
    const event = auditEvent("person.deleted", principal, origin, {
      ...{ accountId: null, targetId: person.id, detail: { email: person.email } },
    });
    const memberships = await deps.people.membershipsOf(person.id);
    const revoke = await deps.connectFlow.farewell(memberships);
    const outcome = await deps.people.deletePerson(person.id, event);
    if (outcome === "missing") throw unknown(person.id);
    if (outcome === "operator") {
      throw forbidden('This person is an operator. Take that away first: PATCH with {"is_operator": false}.');
    }
    deps.changed([person.id]);
    revoke();
    // Keys of an account share cached answers. So the cached answers of the person's accounts are deleted as a whole.
    await deps.keptAnswers.forgetAccounts(memberships.map(({ accountId }) => accountId));
    return { object: "person", id: person.id, deleted: true };
  },
});

const suspend = endpoint("POST", "/v1/admin/people/:id/suspend", {
  operationId: "suspendPerson",
  summary: "Suspend a person",
  description:
    "Within a second, on every replica, the person's sessions, keys that they created as a member, command line logins, apps and MCP connections are refused, and their running requests and streams are stopped. The person cannot sign in. Nothing is deleted: everything works again once the person is resumed. Keys that they created as an owner or admin belong to the account and stay. Keys with `admin:manage` that an operator created also stay valid: revoke or suspend them separately. You cannot suspend or resume yourself, also with a key that you made, nor suspend the last operator.",
  parameters: personParameter,
  response: { description: "The person.", json: personDetailsShape },
  answer: (asked) => setSuspended(asked, true),
});

const resume = endpoint("POST", "/v1/admin/people/:id/resume", {
  operationId: "resumePerson",
  summary: "Resume a suspended person",
  description: "Sessions, keys and apps work again, unless they have ended meanwhile.",
  parameters: personParameter,
  response: { description: "The person.", json: personDetailsShape },
  answer: (asked) => setSuspended(asked, false),
});

async function setSuspended(
  { deps, principal, id, origin }: Named<AdminPeopleDeps> & { origin: Origin },
  isSuspended: boolean,
): Promise<PersonDetailsWire> {
  const person = await find(id, deps);
  if ((person.suspendedAt !== null) === isSuspended) return detailsToWire(person, deps);
  const isOwn = principal.person?.id === person.id || principal.keys.some(({ personId }) => personId === person.id);
  const ids = principal.keys.map((key) => key.id);
  if (isOwn || (await deps.keys.descendFrom(ids, person.id))) {
    const verb = isSuspended ? "suspend" : "resume";
    throw forbidden(`You cannot ${verb} yourself, nor with a key that you made. Ask another operator.`);
  }
  const event = auditEvent(isSuspended ? "person.suspended" : "person.resumed", principal, origin, {
    ...{ accountId: null, targetId: person.id, detail: { email: person.email } },
  });
  const suspendedAt = isSuspended ? origin.nowSeconds : null;
  const outcome = await deps.people.apply({ setSuspended: { personId: person.id, suspendedAt } }, event);
  if (outcome === "person_missing") throw unknown(person.id);
  if (outcome !== "done") throw forbidden("This is the last operator. Make another person an operator first.");
  deps.changed([person.id]);
  return detailsToWire({ ...person, suspendedAt }, deps);
}

const reset = endpoint("POST", "/v1/admin/people/:id/reset-link", {
  operationId: "createResetLink",
  summary: "Create a link to set a new password for a person",
  description:
    "For use without a mail server or mailbox: pass the link to the person yourself, because it is never mailed. It works once, within an hour, and ends all sessions and command line logins of the person.",
  parameters: personParameter,
  response: { description: "The link.", json: resetLinkShape },
  showsSecret: true,
  async answer({ deps, exchange: { clientAddress, requestId }, principal, id }) {
    const { id: personId } = await find(id, deps);
    const made = await deps.links.createReset({ by: principal, personId, origin: { clientAddress, requestId } });
    return { object: "reset_link", person_id: personId, link: made.url, expires_at: made.expiresAt };
  },
});

const members = endpoint("GET", "/v1/admin/accounts/:id/members", {
  operationId: "listAccountMembers",
  summary: "List the members of an account",
  description: "In order of joining.",
  parameters: accountParameter,
  query: memberQuery,
  response: { description: "One page of members.", json: memberList },
  first: findAccount,
  answer: (asked) => membersPage(asked, asked.found.id),
});

const invitations = endpoint("GET", "/v1/admin/accounts/:id/invitations", {
  operationId: "listAccountInvitations",
  summary: "List the open invitations into an account",
  description: "Newest first.",
  parameters: accountParameter,
  query: z.object(pageQuery),
  response: { description: "One page of invitations.", json: invitationList },
  first: findAccount,
  answer: ({ deps, found, query }) => invitationsPage(found.id, query, deps),
});

const inviteInto = endpoint("POST", "/v1/admin/accounts/:id/invitations", {
  operationId: "createAccountInvitation",
  summary: "Invite a person into an account, such as the first owner of a new one",
  description: "Works like `POST /v1/invitations`, with any role.",
  parameters: accountParameter,
  requestBody: createInvitationRequest,
  example: { email: "ada@example.com", role: "owner" },
  response: { description: "The invitation, with its link if it was not mailed.", json: createdInvitationShape },
  showsSecret: true,
  first: findAccount,
  answer: (asked) => invite(asked.found, asked),
});

const withdrawFrom = endpoint("DELETE", "/v1/admin/accounts/:id/invitations/:invitation", {
  operationId: "deleteAccountInvitation",
  summary: "Revoke an invitation into an account",
  parameters: invitationParameters,
  response: { description: "The invitation is revoked.", json: deletedInvitation },
  first: findAccount,
  answer: (asked) => withdraw(asked.found.id, asked.exchange.params["invitation"] ?? "", asked),
});

async function detailsToWire(person: Person, { people }: AdminPeopleDeps): Promise<PersonDetailsWire> {
  const memberships = await people.membershipsOf(person.id);
  return {
    ...personToWire(person),
    memberships: memberships.map(({ id, accountId, accountName, role, createdAt }) => ({
      ...{ id, account_id: accountId, account_name: accountName, role, created_at: createdAt },
    })),
  };
}

async function find(id: string, { people }: AdminPeopleDeps): Promise<Person> {
  const person = await people.findPerson(id);
  if (person) return person;
  throw unknown(id);
}

function unknown(id: string): GatewayError {
  return new GatewayError("not_found", `There is no person ${shown(id)}. GET /v1/admin/people lists them.`);
}
