// Changes memberships inside a transaction, with their credentials and the invitations of members who lose rights.
import { environments } from "../../../domain/api-key.ts";
import type { QuotaRule } from "../../../domain/limits/quota-rules.ts";
import { type Membership, membershipCredentialId } from "../../../domain/people/person.ts";
import { type Role, roles } from "../../../domain/people/role.ts";
import { type ApiKeyRecord, newAndUnbounded } from "../../../domain/principal.ts";
import { accountScopes } from "../../../domain/scope.ts";
import type { Database } from "../../sql/database.ts";
import { apiKeys } from "../credential-rows.ts";
import { memberships } from "./person-rows.ts";

export function readMembership(tx: Database, id: string): Promise<Membership | undefined> {
  return memberships.first(tx`SELECT * FROM memberships WHERE id = ${id}`);
}

/** Adds a membership with its credentials. `email` is the person's address, by which lists of usage name them. */
export async function addMembership(tx: Database, membership: Membership, email: string): Promise<void> {
  await tx`INSERT INTO memberships ${tx(memberships.row({ ...membership, tools: membership.tools ?? null }))}`;
  for (const environment of environments) {
    const id = membershipCredentialId(membership.id, environment);
    const credential: ApiKeyRecord = {
      id,
      kind: "membership",
      personId: membership.personId,
      appId: null,
      role: membership.role,
      accountId: membership.accountId,
      name: email,
      environment,
      // A membership's credential has no secret, so its digest matches none.
      digest: id,
      prefix: "",
      last4: "",
      scopes: accountScopes,
      createdBy: null,
      parentId: null,
      limitId: id,
      createdAt: membership.createdAt,
      ...newAndUnbounded,
      quotas: membership.quotas ?? [],
      tools: membership.tools ?? null,
      seesAllUsage: membership.seesAllUsage,
    };
    await tx`INSERT INTO api_keys ${tx(apiKeys.row(credential))}`;
  }
}

/** Changes the role. `seesAllUsage` was granted for the earlier role, and ends with it. */
export async function changeRole(tx: Database, membership: Membership, role: Role): Promise<void> {
  await tx`UPDATE memberships SET role = ${role} WHERE id = ${membership.id}`;
  for (const environment of environments) {
    const id = membershipCredentialId(membership.id, environment);
    await tx`UPDATE api_keys SET role = ${role} WHERE id = ${id}`;
  }
  await changeSight(tx, membership, false);
  if (roles.indexOf(role) > roles.indexOf(membership.role)) await forgetInvitationsBy(tx, membership);
}

/** Changes the member's quotas, also in the credentials, which copy them. */
export async function changeQuotas(tx: Database, { id }: Membership, quotas: readonly QuotaRule[]): Promise<void> {
  const text = JSON.stringify(quotas);
  await tx`UPDATE memberships SET quotas = ${text} WHERE id = ${id}`;
  const credentials = environments.map((environment) => membershipCredentialId(id, environment));
  await tx`UPDATE api_keys SET quotas = ${text} WHERE id IN ${tx(credentials)}`;
}

/** Changes the tools that the member may use, also in the credentials, which copy the list. */
export async function changeTools(tx: Database, { id }: Membership, tools: readonly string[] | null): Promise<void> {
  const text = tools && JSON.stringify(tools);
  await tx`UPDATE memberships SET tools = ${text} WHERE id = ${id}`;
  const credentials = environments.map((environment) => membershipCredentialId(id, environment));
  await tx`UPDATE api_keys SET tools = ${text} WHERE id IN ${tx(credentials)}`;
}

/** Changes `seesAllUsage`, also in the credentials, so that requests do not read the membership. */
export async function changeSight(tx: Database, { id }: Membership, seesAllUsage: boolean): Promise<void> {
  const value = seesAllUsage ? 1 : 0;
  await tx`UPDATE memberships SET sees_all_usage = ${value} WHERE id = ${id}`;
  const credentials = environments.map((environment) => membershipCredentialId(id, environment));
  await tx`UPDATE api_keys SET sees_all_usage = ${value} WHERE id IN ${tx(credentials)}`;
}

/**
 * Deletes a membership with its invitations and connected MCP accounts, and revokes its credentials. The person's own
 * keys and allowed apps end with the credentials. The rows of the credentials stay, because usage refers to them.
 */
export async function endMembership(tx: Database, membership: Membership, nowSeconds: number): Promise<void> {
  for (const environment of environments) {
    const id = membershipCredentialId(membership.id, environment);
    await tx`UPDATE api_keys SET revoked = 1, revoked_at = ${nowSeconds} WHERE id = ${id} AND revoked = 0`;
  }
  await forgetInvitationsBy(tx, membership);
  await tx`DELETE FROM tool_connections WHERE membership_id = ${membership.id}`;
  await tx`DELETE FROM limit_requests WHERE membership_id = ${membership.id} AND status = 'open'`;
  await tx`DELETE FROM memberships WHERE id = ${membership.id}`;
}

/** Reports whether the account would be left without an owner. */
export async function isLastOwner(tx: Database, { id, accountId, role }: Membership): Promise<boolean> {
  if (role !== "owner") return false;
  const [row]: { n: number | string }[] = await tx`
    SELECT count(*) AS n FROM memberships WHERE account_id = ${accountId} AND role = 'owner' AND id <> ${id}`;
  return Number(row?.n) === 0;
}

/** Deletes a member's invitations, because a link must not grant more than its maker may. */
async function forgetInvitationsBy(tx: Database, { accountId, personId }: Membership): Promise<void> {
  await tx`
    DELETE FROM one_time_links
    WHERE purpose = 'invitation' AND account_id = ${accountId} AND created_by = ${personId} AND used_at IS NULL`;
}

/** Deletes all unused links that a former operator made, which may be for any account and person. */
export async function forgetLinksBy(tx: Database, personId: string): Promise<void> {
  await tx`DELETE FROM one_time_links WHERE created_by = ${personId} AND used_at IS NULL`;
}
