// The endpoints for invitations to an account.

import { z } from "zod";
import type { MadeInvitation, OneTimeLinks } from "../../../accounts/links.ts";
import { requireMayWithdraw, requireSeesMembers } from "../../../accounts/members.ts";
import { GatewayError } from "../../../base/errors.ts";
import { shown } from "../../../base/text/shown.ts";
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
} from "../../../wire/people/people.ts";
import type { PersonRoute } from "../../exchange/route.ts";
import type { Asked, EndpointDeps } from "../endpoint.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";
import { managingEndpoints } from "./people-endpoint.ts";

export interface InvitationRouteDeps extends EndpointDeps {
  links: Pick<OneTimeLinks, "invite">;
  people: Pick<PersonStore, "listInvitations" | "deleteInvitation">;
}

/** A request about invitations: from a person for their current account, or from an operator for any account. */
type Asking<Body = unknown> = Asked<InvitationRouteDeps, Principal, unknown, unknown, Body>;

const idParameter = [{ name: "id", in: "path", description: "Id of the invitation, `lnk_…`." }] as const;
const invitationQuery = z.object(pageQuery);
export const invitationList = listOf(invitationShape, "InvitationList");

const endpoint = managingEndpoints<InvitationRouteDeps>();

export function invitationRoutes(deps: InvitationRouteDeps): PersonRoute[] {
  return [list(deps), create(deps), remove(deps)];
}

const list = endpoint("GET", "/v1/invitations", {
  operationId: "listInvitations",
  summary: "List the open invitations into the account",
  description: "For owners and admins. Newest first.",
  query: invitationQuery,
  response: { description: "One page of invitations.", json: invitationList },
  first: ({ principal }) => requireSeesMembers(principal, principal.account.id),
  answer: ({ deps, principal, query }) => invitationsPage(principal.account.id, query, deps),
});

/** Returns one page of an account's open invitations. */
export async function invitationsPage(
  accountId: string,
  { limit, after }: z.output<typeof invitationQuery>,
  { people, clock }: InvitationRouteDeps,
): Promise<z.infer<typeof invitationList>> {
  const found = await people.listInvitations(accountId, clock.nowSeconds());
  // The whole list is read, because it is short: invitations are rate-limited and expire within a week.
  const rest = after === undefined ? found : found.filter(({ id }) => id < after);
  return pageOf(rest.map(invitationToWire), limit);
}

const create = endpoint("POST", "/v1/invitations", {
  operationId: "createInvitation",
  summary: "Invite a person into the account",
  description:
    "Owners can invite with any role, admins only members. The link works once, within a week. If a mail server is configured, the link is mailed and not shown. Without one, or if the mail fails, `link` has the link for you to pass on. A new invitation of the same address replaces the previous one.",
  requestBody: createInvitationRequest,
  example: { email: "ada@example.com", role: "member" },
  response: { description: "The invitation, with its link if it was not mailed.", json: createdInvitationShape },
  showsSecret: true,
  answer: (asked) => invite(asked.principal.account, asked),
});

/** Invites an email address to the account. */
export async function invite(
  account: Pick<Account, "id" | "name">,
  { deps, exchange, principal, body: { email, role = "member" } }: Asking<z.output<typeof createInvitationRequest>>,
): Promise<z.infer<typeof createdInvitationShape>> {
  const { clientAddress, requestId } = exchange;
  const made = await deps.links.invite({
    ...{ by: principal, account, email, role },
    origin: { clientAddress, requestId },
  });
  return madeToWire(made, await findOpen(made.id, account.id, deps));
}

function madeToWire(
  { url }: MadeInvitation,
  invitation: OneTimeLink | undefined,
): z.infer<typeof createdInvitationShape> {
  // The new invitation can only be missing if another request invited the same address at the same moment.
  if (!invitation) throw unknown("made just now");
  return { ...invitationToWire(invitation), link: url ?? null, mailed: url === undefined };
}

const remove = endpoint("DELETE", "/v1/invitations/:id", {
  operationId: "deleteInvitation",
  summary: "Revoke an invitation",
  description: "The link stops working. For owners and admins who may create such an invitation.",
  parameters: idParameter,
  response: { description: "The invitation is revoked.", json: deletedInvitation },
  answer: (asked) => withdraw(asked.principal.account.id, asked.id, asked),
});

/** Withdraws an invitation. */
export async function withdraw(
  accountId: string,
  id: string,
  { deps, principal, origin }: Asking,
): Promise<z.infer<typeof deletedInvitation>> {
  requireSeesMembers(principal, accountId);
  const invitation = await findOpen(id, accountId, deps);
  if (!invitation) throw unknown(id);
  const { email, role } = invitation;
  requireMayWithdraw(principal, accountId, role ?? "owner");
  const event = auditEvent("invitation.deleted", principal, origin, {
    ...{ accountId, targetId: id, detail: { email, role } },
  });
  if (!(await deps.people.deleteInvitation(id, accountId, event))) throw unknown(id);
  return { object: "invitation", id, deleted: true };
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
  return new GatewayError(
    "not_found",
    `There is no invitation ${shown(id)}, or it was followed or has expired. GET /v1/invitations lists those that are open.`,
  );
}
