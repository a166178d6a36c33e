// The endpoints for invitations into an account.
import { z } from "zod";
import type { MadeInvitation, OneTimeLinks } from "../../../accounts/links.ts";
import { requireMayWithdraw, requireSeesMembers } from "../../../accounts/members.ts";
import { GatewayError } from "../../../base/errors.ts";
import type { Account } from "../../../domain/account.ts";
import type { OneTimeLink, PersonStore } from "../../../domain/people/person.ts";
import type { Principal } from "../../../domain/principal.ts";
import { auditEvent } from "../../../policy/records/audit.ts";
import {
  createdInvitationShape,
  createInvitationRequest,
  deletedInvitation,
  invitationShape,
  invitationToWire,
} from "../../../wire/people.ts";
import { readQuery } from "../../decode/query.ts";
import { readStrictBody } from "../../decode/strict-body.ts";
import type { Exchange, PersonPrincipal, PersonRoute } from "../../exchange/route.ts";
import { bodyErrors, noStore, originOf } from "../changes.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";
import { managingRouter, type PeopleBaseDeps, type PeopleDoc } from "./people-route.ts";

export interface InvitationRouteDeps extends PeopleBaseDeps {
  links: Pick<OneTimeLinks, "invite">;
  people: Pick<PersonStore, "listInvitations" | "deleteInvitation">;
}

const idParameter = [{ name: "id", in: "path", description: "Id of the invitation, `lnk_…`." }] as const;
const invitationQuery = z.object(pageQuery);
export const invitationList = listOf(invitationShape, "InvitationList");

export function invitationRoutes(deps: InvitationRouteDeps): PersonRoute[] {
  const route = managingRouter(deps);
  return [
    route("GET", "/v1/invitations", listDoc, (exchange, principal) => list(exchange, principal, deps)),
    route("POST", "/v1/invitations", createDoc, (exchange, principal) =>
      invite(exchange, principal, principal.account, deps),
    ),
    route("DELETE", "/v1/invitations/:id", removeDoc, (exchange, principal) =>
      withdraw(exchange, principal, principal.account, deps),
    ),
  ];
}

const listDoc: PeopleDoc = {
  operationId: "listInvitations",
  summary: "List the invitations into the account that nobody has followed yet",
  description: "For its owners and admins. Newest first.",
  query: invitationQuery,
  response: { description: "One page of invitations.", json: invitationList },
  errors: ["invalid_request"],
};

async function list({ req }: Exchange, principal: PersonPrincipal, deps: InvitationRouteDeps): Promise<Response> {
  requireSeesMembers(principal, principal.account.id);
  return Response.json(await invitationsPage(req.target, principal.account, deps));
}

/** What the query of the target asks for of an account's open invitations. */
export async function invitationsPage(
  target: string,
  { id: accountId }: Pick<Account, "id">,
  { people, clock }: InvitationRouteDeps,
): Promise<z.infer<typeof invitationList>> {
  const { limit, after } = readQuery(invitationQuery, target);
  const found = await people.listInvitations(accountId, clock.nowSeconds());
  // They are bounded: so many a hour may be made, and each ends within a week.
  const rest = after === undefined ? found : found.filter(({ id }) => id < after);
  return pageOf(rest.map(invitationToWire), limit);
}

const createDoc: PeopleDoc = {
  operationId: "createInvitation",
  summary: "Invite somebody into the account",
  description:
    "Owners invite with any role, admins members. The link works once, for a week. Where a mail server is configured it is sent by mail and not shown; without one, or where the mail fails, `link` is there to hand over. Another invitation of the same address takes the place of the one before.",
  requestBody: createInvitationRequest,
  example: { email: "ada@example.com", role: "member" },
  response: { description: "The invitation, with its link where it was not mailed.", json: createdInvitationShape },
  errors: [...bodyErrors, "rate_limit_exceeded"],
};

export async function invite(
  exchange: Exchange,
  principal: Principal,
  account: Pick<Account, "id" | "name">,
  deps: InvitationRouteDeps,
): Promise<Response> {
  const { email, role = "member" } = await readStrictBody(createInvitationRequest, exchange.req, deps.requestLimits());
  const { clientAddress, requestId } = exchange;
  const made = await deps.links.invite({
    ...{ by: principal, account, email, role },
    origin: { clientAddress, requestId },
  });
  return Response.json(madeToWire(made, await findOpen(made.id, account.id, deps)), { headers: noStore });
}

function madeToWire(
  { url }: MadeInvitation,
  invitation: OneTimeLink | undefined,
): z.infer<typeof createdInvitationShape> {
  // Made a moment ago: only the same address invited once more, right then, takes it away.
  if (!invitation) throw unknown("made just now");
  return { ...invitationToWire(invitation), link: url ?? null, mailed: url === undefined };
}

const removeDoc: PeopleDoc = {
  operationId: "deleteInvitation",
  summary: "Take an invitation back",
  description: "Its link is of no use from then on. For whoever may make such an invitation.",
  parameters: idParameter,
  response: { description: "It is taken back.", json: deletedInvitation },
  errors: ["not_found"],
};

/** `params.id` names the invitation, or, below an account, `params.invitation`. */
export async function withdraw(
  exchange: Exchange,
  principal: Principal,
  { id: accountId }: Pick<Account, "id">,
  deps: InvitationRouteDeps,
): Promise<Response> {
  const { params } = exchange;
  const id = params["invitation"] ?? params["id"] ?? "";
  requireSeesMembers(principal, accountId);
  const invitation = await findOpen(id, accountId, deps);
  if (!invitation) throw unknown(id);
  const { email, role } = invitation;
  requireMayWithdraw(principal, accountId, role ?? "owner");
  const event = auditEvent("invitation.deleted", principal, originOf(exchange, deps), {
    ...{ accountId, targetId: id, detail: { email, role } },
  });
  if (!(await deps.people.deleteInvitation(id, accountId, event))) throw unknown(id);
  return Response.json({ object: "invitation", id, deleted: true } satisfies z.infer<typeof deletedInvitation>);
}

async function findOpen(
  id: string,
  accountId: string,
  { people, clock }: InvitationRouteDeps,
): Promise<OneTimeLink | undefined> {
  const open = await people.listInvitations(accountId, clock.nowSeconds());
  return open.find((invitation) => invitation.id === id);
}

function unknown(id: string): GatewayError {
  const shown = id.length > 100 ? `${id.slice(0, 100)}…` : id;
  return new GatewayError(
    "not_found",
    `There is no invitation ${shown}, or it was followed or has expired. GET /v1/invitations lists those that are open.`,
  );
}
