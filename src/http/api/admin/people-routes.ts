// The operators' endpoints for people, and for the members of any account.
import { z } from "zod";
import type { OneTimeLinks } from "../../../accounts/links.ts";
import { GatewayError } from "../../../base/errors.ts";
import type { AccountStore } from "../../../domain/account.ts";
import { normalizedEmail, type Person, type PersonStore } from "../../../domain/people/person.ts";
import type { Principal } from "../../../domain/principal.ts";
import { auditEvent } from "../../../policy/records/audit.ts";
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
} from "../../../wire/people.ts";
import { readQuery } from "../../decode/query.ts";
import { readStrictBody } from "../../decode/strict-body.ts";
import type { Exchange, ScopedRoute } from "../../exchange/route.ts";
import { bodyErrors, noStore, originOf } from "../changes.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";
import {
  type InvitationRouteDeps,
  invitationList,
  invitationsPage,
  invite,
  withdraw,
} from "../people/invitation-routes.ts";
import { memberList, membersPage } from "../people/member-routes.ts";
import { accountParameter, findAccount } from "./account-routes.ts";
import { type AdminBaseDeps, type AdminDoc, adminRouter } from "./admin-route.ts";

export interface AdminPeopleDeps extends AdminBaseDeps, InvitationRouteDeps {
  people: InvitationRouteDeps["people"] &
    Pick<PersonStore, "findPerson" | "findByEmail" | "listPeople" | "apply" | "deletePerson" | "membershipsOf"> &
    Pick<PersonStore, "listMembers">;
  links: Pick<OneTimeLinks, "invite" | "createReset">;
  accounts: Pick<AccountStore, "findAccount">;
  /** Called after a person was deleted: what their memberships bound is remembered with them. */
  changed(ids?: readonly string[]): void;
}

const personParameter = [{ name: "id", in: "path", description: "Id of the person, `usr_…`." }] as const;
const invitationParameters = [
  ...accountParameter,
  { name: "invitation", in: "path", description: "Id of the invitation, `lnk_…`." },
] as const;
const personQuery = z.object({
  ...pageQuery,
  email: z.string().min(3).max(254).optional().meta({ description: "an e-mail address; only who has it is listed" }),
});
const personList = listOf(personShape, "PersonList");

export function adminPeopleRoutes(deps: AdminPeopleDeps): ScopedRoute[] {
  const route = adminRouter(deps);
  const members = "/v1/admin/accounts/:id/members";
  const invitations = "/v1/admin/accounts/:id/invitations";
  return [
    route("GET", "/v1/admin/people", listDoc, list),
    route("GET", "/v1/admin/people/:id", retrieveDoc, retrieve),
    route("PATCH", "/v1/admin/people/:id", updateDoc, update),
    route("DELETE", "/v1/admin/people/:id", removeDoc, remove),
    route("POST", "/v1/admin/people/:id/reset-link", resetDoc, reset),
    route("GET", members, membersDoc, async (exchange) => {
      const account = await findAccount(exchange, deps);
      return Response.json(await membersPage(exchange.req.target, account.id, deps));
    }),
    route("GET", invitations, invitationsDoc, async (exchange) =>
      Response.json(await invitationsPage(exchange.req.target, await findAccount(exchange, deps), deps)),
    ),
    route("POST", invitations, inviteDoc, async (exchange, principal) =>
      invite(exchange, principal, await findAccount(exchange, deps), deps),
    ),
    route("DELETE", `${invitations}/:invitation`, withdrawDoc, async (exchange, principal) =>
      withdraw(exchange, principal, await findAccount(exchange, deps), deps),
    ),
  ];
}

const listDoc: AdminDoc = {
  operationId: "listPeople",
  summary: "List the people who may sign in",
  description: "Those who came first come first.",
  query: personQuery,
  response: { description: "One page of people.", json: personList },
  errors: ["invalid_request", "service_unavailable"],
};

async function list({ req }: Exchange, _principal: Principal, { people }: AdminPeopleDeps): Promise<Response> {
  const { limit, after, email } = readQuery(personQuery, req.target);
  if (email === undefined) {
    return Response.json(pageOf((await people.listPeople({ after, limit: limit + 1 })).map(personToWire), limit));
  }
  const person = await people.findByEmail(normalizedEmail(email));
  return Response.json(pageOf(person ? [personToWire(person)] : [], limit));
}

const retrieveDoc: AdminDoc = {
  operationId: "retrievePerson",
  summary: "Retrieve one person, with what accounts they are members of",
  parameters: personParameter,
  response: { description: "The person.", json: personDetailsShape },
  errors: ["not_found", "service_unavailable"],
};

async function retrieve(exchange: Exchange, _principal: Principal, deps: AdminPeopleDeps): Promise<Response> {
  return Response.json(await detailsToWire(await find(exchange, deps), deps));
}

const updateDoc: AdminDoc = {
  operationId: "updatePerson",
  summary: "Make somebody an operator, or no longer one",
  description:
    "It holds at once. Nobody takes it from themselves, and the last operator stays one. Keys with `admin:manage` that an operator made are keys of their own: revoke them apart.",
  parameters: personParameter,
  requestBody: updatePersonRequest,
  example: { is_operator: true },
  response: { description: "The person.", json: personDetailsShape },
  errors: [...bodyErrors, "not_found", "service_unavailable"],
};

async function update(exchange: Exchange, principal: Principal, deps: AdminPeopleDeps): Promise<Response> {
  const { is_operator: isOperator } = await readStrictBody(updatePersonRequest, exchange.req, deps.requestLimits());
  const person = await find(exchange, deps);
  if (person.isOperator === isOperator) return Response.json(await detailsToWire(person, deps));
  if (!isOperator && principal.person?.id === person.id) {
    throw new GatewayError(
      "permission_denied",
      "is_operator: nobody takes this from themselves; ask another operator.",
    );
  }
  const event = auditEvent("person.updated", principal, originOf(exchange, deps), {
    ...{ accountId: null, targetId: person.id },
    detail: { is_operator: { before: person.isOperator, after: isOperator } },
  });
  const outcome = await deps.people.apply({ setOperator: { personId: person.id, isOperator } }, event);
  if (outcome === "done") return Response.json(await detailsToWire({ ...person, isOperator }, deps));
  if (outcome === "person_missing") throw unknown(person.id);
  throw new GatewayError("permission_denied", "is_operator: this is the last operator; make somebody else one first.");
}

const removeDoc: AdminDoc = {
  operationId: "deletePerson",
  summary: "Delete a person",
  description:
    "With memberships, sessions, passkeys and sign-ins; keys that they made as a member, logins and apps that they allowed end. What they made as an owner or admin, and what was used, stays. An operator has to be none first. An account may be left without an owner: `POST /v1/admin/accounts/{id}/invitations` invites another.",
  parameters: personParameter,
  response: { description: "The person is deleted.", json: deletedPerson },
  errors: ["not_found", "service_unavailable"],
};

async function remove(exchange: Exchange, principal: Principal, deps: AdminPeopleDeps): Promise<Response> {
  const person = await find(exchange, deps);
  const event = auditEvent("person.deleted", principal, originOf(exchange, deps), {
    ...{ accountId: null, targetId: person.id, detail: { email: person.email } },
  });
  const outcome = await deps.people.deletePerson(person.id, event);
  if (outcome === "missing") throw unknown(person.id);
  if (outcome === "operator") {
    throw new GatewayError(
      "permission_denied",
      'This person is an operator. Take that away first: PATCH with {"is_operator": false}.',
    );
  }
  deps.changed([person.id]);
  return Response.json({ object: "person", id: person.id, deleted: true } satisfies z.infer<typeof deletedPerson>);
}

const resetDoc: AdminDoc = {
  operationId: "createResetLink",
  summary: "Make a link with which a person sets another password",
  description:
    "For where there is no mail server, or no mailbox: hand it to the person yourself. It is never mailed. It works once, for an hour, and ends all of the person's sessions and command line logins.",
  parameters: personParameter,
  response: { description: "The link.", json: resetLinkShape },
  errors: ["not_found", "service_unavailable"],
};

async function reset(exchange: Exchange, principal: Principal, deps: AdminPeopleDeps): Promise<Response> {
  const { id: personId } = await find(exchange, deps);
  const { clientAddress, requestId } = exchange;
  const made = await deps.links.createReset({ by: principal, personId, origin: { clientAddress, requestId } });
  const answer: z.infer<typeof resetLinkShape> = {
    object: "reset_link",
    person_id: personId,
    link: made.url,
    expires_at: made.expiresAt,
  };
  return Response.json(answer, { headers: noStore });
}

const membersDoc: AdminDoc = {
  operationId: "listAccountMembers",
  summary: "List the members of an account",
  description: "Those who joined first come first.",
  parameters: accountParameter,
  query: z.object(pageQuery),
  response: { description: "One page of members.", json: memberList },
  errors: ["invalid_request", "not_found", "service_unavailable"],
};

const invitationsDoc: AdminDoc = {
  operationId: "listAccountInvitations",
  summary: "List the invitations into an account that nobody has followed yet",
  description: "Newest first.",
  parameters: accountParameter,
  query: z.object(pageQuery),
  response: { description: "One page of invitations.", json: invitationList },
  errors: ["invalid_request", "not_found", "service_unavailable"],
};

const inviteDoc: AdminDoc = {
  operationId: "createAccountInvitation",
  summary: "Invite somebody into an account, such as the first owner of a new one",
  description: "As `POST /v1/invitations`, with any role.",
  parameters: accountParameter,
  requestBody: createInvitationRequest,
  example: { email: "ada@example.com", role: "owner" },
  response: { description: "The invitation, with its link where it was not mailed.", json: createdInvitationShape },
  errors: [...bodyErrors, "not_found", "rate_limit_exceeded", "service_unavailable"],
};

const withdrawDoc: AdminDoc = {
  operationId: "deleteAccountInvitation",
  summary: "Take an invitation into an account back",
  parameters: invitationParameters,
  response: { description: "It is taken back.", json: deletedInvitation },
  errors: ["not_found", "service_unavailable"],
};

async function detailsToWire(person: Person, { people }: AdminPeopleDeps): Promise<PersonDetailsWire> {
  const memberships = await people.membershipsOf(person.id);
  return {
    ...personToWire(person),
    memberships: memberships.map(({ id, accountId, accountName, role, createdAt }) => ({
      ...{ id, account_id: accountId, account_name: accountName, role, created_at: createdAt },
    })),
  };
}

async function find({ params }: Exchange, { people }: AdminPeopleDeps): Promise<Person> {
  const id = params["id"] ?? "";
  const person = await people.findPerson(id);
  if (person) return person;
  throw unknown(id);
}

function unknown(id: string): GatewayError {
  const shown = id.length > 100 ? `${id.slice(0, 100)}…` : id;
  return new GatewayError("not_found", `There is no person ${shown}. GET /v1/admin/people lists them.`);
}
