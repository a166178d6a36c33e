// The endpoints for the members of an account.

import { z } from "zod";
import {
  changeMemberQuotas,
  changeMemberTools,
  changeRole,
  changeSight,
  removeMember,
  requireChanged,
  requireSeesMembers,
} from "../../../accounts/members.ts";
import { GatewayError } from "../../../base/errors.ts";
import { shown } from "../../../base/text/shown.ts";
import { runningRaises } from "../../../domain/limits/limit-requests.ts";
import type { LimitStore } from "../../../domain/limits/limits.ts";
import { type Membership, membershipCredentialId, type PersonStore } from "../../../domain/people/person.ts";
import type { SessionStore } from "../../../domain/people/session.ts";
import type { KeyStore, Principal } from "../../../domain/principal.ts";
import type { ConnectFlow } from "../../../mcp/connections/connect-flow.ts";
import { windowsOfKey } from "../../../policy/limits-of.ts";
import { keyTools, quotaRules } from "../../../policy/manage/key-values.ts";
import { quotaUse } from "../../../policy/quota-use.ts";
import type { Throttle } from "../../../policy/throttle.ts";
import {
  memberDetailsShape,
  memberShape,
  memberToWire,
  removedMember,
  updateMemberRequest,
} from "../../../wire/people/people.ts";
import type { PersonPrincipal, PersonRoute } from "../../exchange/route.ts";
import type { EndpointDeps, Named, Request } from "../endpoint.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";
import { managingEndpoints } from "./people-endpoint.ts";
import { includeUsage, type PeopleUsageDeps, withUsage } from "./people-usage.ts";

export interface MemberRouteDeps extends EndpointDeps, PeopleUsageDeps {
  people: Pick<
    PersonStore,
    | "findPerson"
    | "findMembership"
    | "listMembers"
    | "setRole"
    | "setQuotas"
    | "setTools"
    | "setSeesAllUsage"
    | "removeMembership"
  >;
  sessionStore: Pick<SessionStore, "list">;
  connectFlow: Pick<ConnectFlow, "farewell">;
  keys: Pick<KeyStore, "findChainById">;
  limits: Pick<LimitStore, "usedInWindow">;
  throttle: Pick<Throttle, "require">;
  /** Called after each committed change, to clear caches of the members' credentials. */
  changed(ids?: readonly string[]): void;
}

const idParameter = [{ name: "id", in: "path", description: "Id of the membership, `mbr_…`." }] as const;
export const memberQuery = z.object({ ...pageQuery, ...includeUsage });
export const memberList = listOf(memberShape, "MemberList");

const endpoint = managingEndpoints<MemberRouteDeps>();

export function memberRoutes(deps: MemberRouteDeps): PersonRoute[] {
  return [list(deps), retrieve(deps), update(deps), remove(deps)];
}

const list = endpoint("GET", "/v1/members", {
  operationId: "listMembers",
  summary: "List the members of the account",
  description: "For owners and admins. In order of joining.",
  query: memberQuery,
  response: { description: "One page of members.", json: memberList },
  first: ({ principal }) => requireSeesMembers(principal, principal.account.id),
  answer: (asked) => membersPage(asked, asked.principal.account.id),
});

/** Returns one page of an account's members. */
export async function membersPage(
  asked: Request<PeopleUsageDeps & { people: Pick<PersonStore, "listMembers"> }, Principal> & {
    query: z.output<typeof memberQuery>;
  },
  accountId: string,
): Promise<z.infer<typeof memberList>> {
  const { limit, after } = asked.query;
  const found = await asked.deps.people.listMembers(accountId, { after, limit: limit + 1 });
  return withUsage(asked, pageOf(found.map(memberToWire), limit), accountId, (one) => one.person_id);
}

const retrieve = endpoint("GET", "/v1/members/:id", {
  operationId: "retrieveMember",
  summary: "Retrieve one member, with the usage of the member's quotas",
  description: "For owners, admins and the member. Other callers get 404.",
  parameters: idParameter,
  response: { description: "The member.", json: memberDetailsShape },
  async answer({ deps, principal, id, origin }) {
    const target = await find({ deps, principal, id });
    const chain = await deps.keys.findChainById(membershipCredentialId(target.id, principal.environment));
    const used = chain
      ? await quotaUse(windowsOfKey(chain.keys[0], runningRaises(chain.account.raises, origin.nowSeconds)), deps.limits)
      : [];
    return { ...(await toWire(target, deps)), quotas_used: used };
  },
});

const update = endpoint("PATCH", "/v1/members/:id", {
  operationId: "updateMember",
  summary: "Change a member's role, quotas, tools or view of usage",
  description:
    "Only owners change roles, and nobody changes their own. `quotas` per window and `tools` limit everything that the person does and creates as a member. Owners set them, and admins set them for members. Nobody can grant more tools than their own. `sees_all_usage` lets a member see the usage and requests of the whole account. Only owners set it. Changes apply immediately. Keys that a person created as a member stay the member's. Keys created as an owner or admin belong to the account.",
  parameters: idParameter,
  requestBody: updateMemberRequest,
  example: { role: "admin" },
  response: { description: "The member.", json: memberShape },
  async answer({ deps, principal, id, body, origin }) {
    const { people } = deps;
    const target = await find({ deps, principal, id });
    const { role = target.role } = body;
    const quotas = body.quotas === undefined ? (target.quotas ?? []) : quotaRules(body.quotas);
    const ofRole = body.role === undefined ? undefined : changeRole(principal, target, role, origin);
    const ofQuotas = body.quotas === undefined ? undefined : changeMemberQuotas(principal, target, quotas, origin);
    const tools = body.tools === undefined ? (target.tools ?? null) : keyTools(body.tools);
    const ofTools = body.tools === undefined ? undefined : changeMemberTools(principal, target, tools, origin);
    // A new role resets `seesAllUsage` to false. So if the role changes, the old value does not count.
    const sightBefore = ofRole === undefined && target.seesAllUsage;
    const { sees_all_usage: seesAllUsage = sightBefore } = body;
    const inRole = { ...target, seesAllUsage: sightBefore };
    const ofSight =
      body.sees_all_usage === undefined ? undefined : changeSight(principal, inRole, seesAllUsage, origin);
    if (ofRole || ofQuotas || ofTools || ofSight) {
      await deps.throttle.require("change", principal);
      // The role is changed first: only this change may be refused, and it resets `seesAllUsage`.
      if (ofRole) requireChanged(await people.setRole(target.id, role, ofRole.event));
      if (ofQuotas) requireChanged(await people.setQuotas(target.id, quotas, ofQuotas.event));
      if (ofTools) requireChanged(await people.setTools(target.id, tools, ofTools.event));
      if (ofSight) requireChanged(await people.setSeesAllUsage(target.id, seesAllUsage, ofSight.event));
      deps.changed([target.personId]);
    }
    return toWire({ ...target, role, quotas, tools, seesAllUsage }, deps);
  },
});

const remove = endpoint("DELETE", "/v1/members/:id", {
  operationId: "removeMember",
  summary: "Remove a member from the account, or leave it",
  description:
    "The membership ends immediately, with the keys that the member created, and with the person's logins and allowed apps for this account. Keys of the account, created by an owner or admin, stay. An account keeps at least one owner.",
  parameters: idParameter,
  response: { description: "The member is removed.", json: removedMember },
  async answer({ deps, principal, id, origin }) {
    const target = await find({ deps, principal, id });
    const { event } = removeMember(principal, target, origin);
    const revoke = await deps.connectFlow.farewell([target]);
    requireChanged(await deps.people.removeMembership(target.id, event));
    deps.changed([target.personId]);
    revoke();
    return { object: "member", id: target.id, deleted: true };
  },
});

/**
 * Returns the membership that the path names. Throws for a membership of another account. Throws for a membership of
 * another person if the caller may not see members.
 */
async function find({ deps, principal, id }: Named<MemberRouteDeps, PersonPrincipal>): Promise<Membership> {
  const found = await deps.people.findMembership(id);
  const isHere = found?.accountId === principal.account.id;
  if (found?.personId !== principal.person.id) requireSeesMembers(principal, principal.account.id);
  if (found && isHere) return found;
  throw new GatewayError("not_found", `There is no member ${shown(id)}. GET /v1/members lists those of this account.`);
}

async function toWire(membership: Membership, deps: MemberRouteDeps): Promise<z.infer<typeof memberShape>> {
  const { personId } = membership;
  const [person, sessions] = await Promise.all([
    deps.people.findPerson(personId),
    deps.sessionStore.list(personId, deps.clock.nowSeconds()),
  ]);
  const lastSeenAt = sessions.reduce<number | null>((latest, one) => Math.max(latest ?? 0, one.lastSeenAt), null);
  return memberToWire({ ...membership, email: person?.email ?? "", name: person?.name ?? "", lastSeenAt });
}
