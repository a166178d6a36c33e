// Grants as credential records: adds, counts and ends them. Each function runs inside a transaction.

import type { AuditEvent } from "../../../domain/audit.ts";
import { commandLineAppId } from "../../../domain/people/app.ts";
import type { Authorization, GrantBounds, RefreshToken } from "../../../domain/people/oauth.ts";
import { membershipCredentialId } from "../../../domain/people/person.ts";
import { type ApiKeyRecord, type KeyChain, keyStatus } from "../../../domain/principal.ts";
import type { Database } from "../../sql/database.ts";
import { insertAuditEvent } from "../audit-log.ts";
import { apiKeys, readChain } from "../credential-rows.ts";
import { refreshTokens } from "./oauth-rows.ts";

/** Maximum grants of one person for one app and account; a further one ends the oldest. */
const maxGrants = 50;
const maxLogins = 20;

export interface IssuedGrant {
  grant: ApiKeyRecord;
  refreshToken: RefreshToken;
}

type GrantOwner = Pick<ApiKeyRecord, "appId" | "personId" | "accountId" | "environment" | "parentId">;

export function isActive({ keys, account }: KeyChain, nowSeconds: number): boolean {
  return account.status === "active" && keys.every((key) => keyStatus(key, nowSeconds) === "active");
}

/** Reports whether the membership and the app of a grant still exist. */
export async function mayGrant(tx: Database, grant: GrantOwner, nowSeconds: number): Promise<boolean> {
  const chain = await readChain(tx, { id: grant.parentId ?? "" });
  if (!chain || !isActive(chain, nowSeconds)) return false;
  const [{ kind, personId, accountId, environment }] = chain.keys;
  if (kind !== "membership" || personId !== grant.personId) return false;
  if (accountId !== grant.accountId || environment !== grant.environment) return false;
  if (grant.appId === commandLineAppId) return true;
  const found: unknown[] = await tx`
    SELECT apps.id FROM apps JOIN accounts ON accounts.id = apps.account_id
    WHERE apps.id = ${grant.appId} AND apps.suspended_by IS NULL AND accounts.status = 'active'
    UNION ALL SELECT id FROM outside_clients WHERE id = ${grant.appId} AND suspended_by IS NULL`;
  return found.length > 0;
}

/** Reports whether a person's permission could be granted now. */
export function mayAllow(tx: Database, authorization: Authorization, nowSeconds: number): Promise<boolean> {
  const parentId = membershipCredentialId(authorization.membershipId, authorization.environment);
  return mayGrant(tx, { ...authorization, parentId }, nowSeconds);
}

/**
 * Adds a grant with its refresh token. Returns `true` if an older grant had to end, which caches of credentials must
 * then drop; otherwise `added`.
 */
export async function addGrant(
  tx: Database,
  { grant, refreshToken }: IssuedGrant,
  event: AuditEvent,
): Promise<true | "added"> {
  const most = grant.appId === commandLineAppId ? maxLogins : maxGrants;
  const live: { id: string }[] = await tx`
    SELECT id FROM api_keys
    WHERE person_id = ${grant.personId} AND app_id = ${grant.appId} AND account_id = ${grant.accountId}
      AND kind = 'grant' AND revoked = 0
    ORDER BY created_at, id`;
  const ending = live.slice(0, Math.max(0, live.length - most + 1));
  for (const { id } of ending) {
    await endGrant(tx, id, event.at);
    await insertAuditEvent(tx, endEvent(event, id, "too_many"));
  }
  await tx`INSERT INTO api_keys ${tx(apiKeys.row(await bounded(tx, grant)))}`;
  await tx`INSERT INTO refresh_tokens ${tx(refreshTokens.row(refreshToken))}`;
  const { personId, appId, accountId, quotas } = grant;
  if (quotas.length === 0 || personId === null || appId === null) return ending.length > 0 ? true : "added";
  // The person chose quotas, which hold for all grants of the app together.
  const limited = await limitGrantsFor(tx, { personId, appId, accountId }, { quotas });
  return ending.length > 0 || limited > 1 ? true : "added";
}

/**
 * Gives a new grant the budget of the person's other grants for the app, and their quotas unless it has its own.
 * Without a current grant, the grant that ended last counts, because an app can end its grants itself.
 */
async function bounded(tx: Database, grant: ApiKeyRecord): Promise<ApiKeyRecord> {
  const { environment } = grant;
  const current = await apiKeys.all(tx`
    SELECT * FROM api_keys WHERE ${isFor(tx, grant)} AND kind = 'grant' AND revoked = 0 ORDER BY created_at, id`);
  const live = current.filter((one) => one.environment === environment);
  const other =
    live.length > 0
      ? live.findLast(({ quotas }) => quotas.length > 0)
      : await apiKeys.first(tx`
          SELECT * FROM api_keys
          WHERE ${isFor(tx, grant)} AND environment = ${environment} AND kind = 'grant' AND revoked = 1
          ORDER BY revoked_at DESC, id DESC LIMIT 1`);
  if (!other || other.quotas.length === 0) return grant;
  return { ...grant, quotas: grant.quotas.length > 0 ? grant.quotas : other.quotas, limitId: other.limitId };
}

/** Sets the same quotas for all grants of a person for an app and account. Returns the number of grants. */
export async function limitGrantsFor(
  tx: Database,
  of: { personId: string; appId: string; accountId: string },
  { quotas, tools }: GrantBounds,
): Promise<number> {
  const live: { id: string; environment: string; limit_id: string }[] = await tx`
    SELECT id, environment, limit_id FROM api_keys
    WHERE ${isFor(tx, of)} AND kind = 'grant' AND revoked = 0 ORDER BY created_at, id`;
  if (tools !== undefined) {
    const text = tools && JSON.stringify(tools);
    await tx`UPDATE api_keys SET tools = ${text} WHERE ${isFor(tx, of)} AND kind = 'grant' AND revoked = 0`;
  }
  if (quotas === undefined) return live.length;
  for (const { id, environment } of live) {
    const limitId = live.find((first) => first.environment === environment)?.limit_id ?? id;
    await tx`UPDATE api_keys SET quotas = ${JSON.stringify(quotas)}, limit_id = ${limitId} WHERE id = ${id}`;
  }
  return live.length;
}

function isFor(
  tx: Database,
  { personId, appId, accountId }: { personId: string | null; appId: string | null; accountId: string },
) {
  return tx`person_id = ${personId} AND app_id = ${appId} AND account_id = ${accountId}`;
}

/** Returns false if the grant is missing or has ended. */
export async function endGrant(tx: Database, id: string, nowSeconds: number): Promise<boolean> {
  const ended: unknown[] = await tx`
    UPDATE api_keys SET revoked = 1, revoked_at = ${nowSeconds}
    WHERE id = ${id} AND kind = 'grant' AND revoked = 0 RETURNING id`;
  return ended.length > 0;
}

/** Ends a person's grants for an app, optionally for one account, except `exceptId`, and returns them. */
export async function endGrantsFor(
  tx: Database,
  of: { personId: string; appId: string; accountId?: string | undefined; exceptId?: string },
  nowSeconds: number,
): Promise<{ id: string; accountId: string }[]> {
  const { personId, appId, accountId, exceptId = "" } = of;
  const which = () => tx`person_id = ${personId} AND app_id = ${appId}
    ${accountId === undefined ? tx`` : tx`AND account_id = ${accountId}`}`;
  const ended: { id: string; account_id: string }[] = await tx`
    UPDATE api_keys SET revoked = 1, revoked_at = ${nowSeconds}
    WHERE ${which()} AND kind = 'grant' AND revoked = 0 AND id <> ${exceptId} RETURNING id, account_id`;
  // An unredeemed code must not restore the app's access.
  await tx`DELETE FROM authorization_codes WHERE ${which()} AND grant_id IS NULL`;
  await tx`DELETE FROM device_codes WHERE ${which()} AND state = 'approved'`;
  return ended.map((row) => ({ id: row.id, accountId: row.account_id }));
}

/** Ends a grant without a remaining refresh token, because it cannot be used any more. */
export async function endIdle(tx: Database, id: string, nowSeconds: number): Promise<void> {
  const tokens: unknown[] = await tx`SELECT digest FROM refresh_tokens WHERE grant_id = ${id} LIMIT 1`;
  const chain = tokens.length === 0 ? await readChain(tx, { id }) : undefined;
  if (!chain || !(await endGrant(tx, id, nowSeconds))) return;
  const event = { at: nowSeconds, actor: { type: "system" }, accountId: chain.account.id } as const;
  await insertAuditEvent(tx, endEvent({ ...event, clientAddress: null, requestId: null }, id, "idle"));
}

export function endEvent(
  because: Pick<AuditEvent, "at" | "actor" | "accountId" | "clientAddress" | "requestId">,
  grantId: string,
  reason: string,
): AuditEvent {
  const { at, actor, accountId, clientAddress, requestId } = because;
  const origin = { at, actor, accountId, clientAddress, requestId };
  return {
    ...origin,
    id: `audit_${Bun.randomUUIDv7()}`,
    action: "grant.revoked",
    targetId: grantId,
    detail: { reason },
  };
}
