// The authorization server's records in the database: codes, refresh tokens, device codes and grants.
import type { Acting, AuditEvent } from "../../../domain/audit.ts";
import type {
  AllowedApp,
  Authorization,
  AuthorizationCode,
  DeviceCode,
  GrantBounds,
  OAuthStore,
  RefreshToken,
} from "../../../domain/people/oauth.ts";
import { membershipCredentialId } from "../../../domain/people/person.ts";
import type { KeyChain } from "../../../domain/principal.ts";
import type { Database } from "../../sql/database.ts";
import { available, written } from "../../sql/outage.ts";
import { changeCredentials, whileActive } from "../credential-change.ts";
import { readChain } from "../credential-rows.ts";
import { allowedApps, readLiveGrants, togetherOf } from "./allowed-apps.ts";
import {
  addGrant,
  endGrant,
  endGrantsFor,
  endIdle,
  type IssuedGrant,
  isActive,
  limitGrantsFor,
  mayAllow,
  mayGrant,
} from "./grants.ts";
import { authorizationCodes, deviceCodes, refreshTokens } from "./oauth-rows.ts";

/** Maximum number of rows in a transaction, because other writers wait for it. */
const pruneAtOnce = 500;
/** Maximum transactions in a row. They delete more rows than can be created between two runs. */
const maxPieces = 200;
/** Seconds for which redeemed codes and used tokens are kept after their end, so that a replay is recognized. */
const keptSeconds = 86_400;
/** Device codes are kept for less time, because anybody can create them. */
const deviceCodesKeptSeconds = 3_600;
/** Seconds to keep the sealed answer to a used token: several times as long as that answer may be repeated. */
const sealedSeconds = 60;
/** Seconds that are added to the interval after `slow_down` (RFC 8628, 3.5). */
const slowDownSeconds = 5;

export class SqlOAuthStore implements OAuthStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  insertCode(code: AuthorizationCode, by: Acting): Promise<boolean> {
    return whileActive(this.#db, by, async (tx) => {
      if (!(await mayAllow(tx, code, by.at))) return false;
      await tx`INSERT INTO authorization_codes ${tx(authorizationCodes.row(code))}`;
      return true;
    });
  }

  findCode(digest: string): Promise<AuthorizationCode | undefined> {
    return available(readCode(this.#db, digest));
  }

  redeemCode(
    digest: string,
    issued: IssuedGrant,
    events: { issued: AuditEvent; replayed: AuditEvent },
  ): Promise<"issued" | "replayed" | "refused"> {
    const { grant } = issued;
    return changeCredentials(this.#db, events.issued, async (tx) => {
      const code = await readCode(tx, digest);
      if (!code) return { result: "refused", changed: false };
      if (code.grantId === null) {
        if (!(await mayGrant(tx, grant, events.issued.at))) return { result: "refused", changed: false };
        // A concurrent redemption of the code finds it taken, also on a database with concurrent writes.
        const taken: unknown[] = await tx`
          UPDATE authorization_codes SET grant_id = ${grant.id}
          WHERE digest = ${digest} AND grant_id IS NULL RETURNING digest`;
        if (taken.length > 0) return { result: "issued", changed: await addGrant(tx, issued, events.issued) };
      }
      const winner = code.grantId ?? (await readCode(tx, digest))?.grantId ?? "";
      const changed = await endGrant(tx, winner, events.replayed.at);
      return { result: "replayed", changed, event: { ...events.replayed, targetId: winner } };
    });
  }

  findRefreshToken(digest: string): Promise<{ token: RefreshToken; grant: KeyChain } | undefined> {
    return available(readRefreshToken(this.#db, digest));
  }

  rotateRefreshToken(
    digest: string,
    successor: RefreshToken,
    used: { at: number; sealedAnswer: string },
    event: AuditEvent,
  ): Promise<"rotated" | RefreshToken | undefined> {
    return changeCredentials<"rotated" | RefreshToken | undefined>(this.#db, event, async (tx) => {
      const found = await readRefreshToken(tx, digest);
      if (!found || found.token.usedAt !== null || !isActive(found.grant, used.at)) {
        return { result: found?.token, changed: false };
      }
      const taken: unknown[] = await tx`
        UPDATE refresh_tokens SET used_at = ${used.at}, sealed_answer = ${used.sealedAnswer}
        WHERE digest = ${digest} AND used_at IS NULL RETURNING digest`;
      if (taken.length === 0) return { result: (await readRefreshToken(tx, digest))?.token, changed: false };
      await tx`INSERT INTO refresh_tokens ${tx(refreshTokens.row(successor))}`;
      // Old sealed answers are dropped, so that an old token and the database together cannot yield a newer token.
      await tx`
        UPDATE refresh_tokens SET sealed_answer = NULL
        WHERE grant_id = ${successor.grantId} AND sealed_answer IS NOT NULL AND used_at <= ${used.at - sealedSeconds}`;
      return { result: "rotated", changed: "added" };
    });
  }

  revokeGrant(grantId: string, event: AuditEvent): Promise<boolean> {
    return changeCredentials(this.#db, event, async (tx) => {
      const ended = await endGrant(tx, grantId, event.at);
      return { result: ended, changed: ended };
    });
  }

  async insertDeviceCode(code: DeviceCode): Promise<boolean> {
    const added: unknown[] = await this.#write(
      (tx) => tx`INSERT INTO device_codes ${tx(deviceCodes.row(code))} ON CONFLICT DO NOTHING RETURNING digest`,
    );
    return added.length > 0;
  }

  findByUserCode(userCode: string, nowSeconds: number): Promise<DeviceCode | undefined> {
    const rows = this.#db`
      SELECT * FROM device_codes
      WHERE user_code = ${userCode} AND state = 'pending' AND expires_at > ${nowSeconds}`;
    return available(deviceCodes.first(rows));
  }

  pollDeviceCode(digest: string, nowSeconds: number): Promise<{ code: DeviceCode; tooEarly: boolean } | undefined> {
    return this.#write(async (tx) => {
      const code = await readDeviceCode(tx, digest);
      if (!code) return undefined;
      // If a clock was set back, the elapsed time is unknown.
      const sincePoll = code.polledAt === null ? -1 : nowSeconds - code.polledAt;
      const tooEarly = sincePoll >= 0 && sincePoll < code.intervalSeconds;
      const intervalSeconds = code.intervalSeconds + (tooEarly ? slowDownSeconds : 0);
      await tx`
        UPDATE device_codes SET polled_at = ${nowSeconds}, interval_seconds = ${intervalSeconds}
        WHERE digest = ${digest} AND state = 'pending'`;
      return { code: { ...code, intervalSeconds }, tooEarly };
    });
  }

  decideDeviceCode(
    userCode: string,
    decision: { state: "denied" } | { state: "approved"; authorization: Authorization },
    event: AuditEvent,
  ): Promise<boolean> {
    return changeCredentials(this.#db, event, async (tx) => {
      const { authorization } = { authorization: undefined, ...decision };
      if (authorization && !(await mayAllow(tx, authorization, event.at))) return { result: false, changed: false };
      const decided: unknown[] = await tx`
        UPDATE device_codes SET state = ${decision.state}
          ${authorization ? approvedColumns(tx, authorization) : tx``}
        WHERE user_code = ${userCode} AND state = 'pending' AND expires_at > ${event.at}
          ${authorization ? tx`AND app_id = ${authorization.appId}` : tx``} RETURNING digest`;
      return { result: decided.length > 0, changed: decided.length > 0 ? "added" : false };
    });
  }

  redeemDeviceCode(digest: string, issued: IssuedGrant, event: AuditEvent): Promise<boolean> {
    return changeCredentials(this.#db, event, async (tx) => {
      if (!(await mayGrant(tx, issued.grant, event.at))) return { result: false, changed: false };
      const taken: unknown[] = await tx`
        UPDATE device_codes SET state = 'redeemed', grant_id = ${issued.grant.id}
        WHERE digest = ${digest} AND state = 'approved' RETURNING digest`;
      if (taken.length === 0) return { result: false, changed: false };
      return { result: true, changed: await addGrant(tx, issued, event) };
    });
  }

  async listAllowedApps(personId: string, nowSeconds: number): Promise<AllowedApp[]> {
    return allowedApps(await available(readLiveGrants(this.#db, personId, nowSeconds)));
  }

  async allowedBefore(
    authorization: Omit<Authorization, "scopes" | "tools" | "quotas">,
    nowSeconds: number,
  ): Promise<Pick<AllowedApp, "scopes" | "tools">> {
    const { personId, appId, membershipId, environment } = authorization;
    const parentId = membershipCredentialId(membershipId, environment);
    const grants = await available(readLiveGrants(this.#db, personId, nowSeconds));
    return togetherOf(grants.filter((grant) => grant.appId === appId && grant.parentId === parentId));
  }

  revokeAllowedApp(personId: string, appId: string, accountId: string | undefined, event: AuditEvent): Promise<number> {
    return changeCredentials(this.#db, event, async (tx) => {
      const ended = await endGrantsFor(tx, { personId, appId, accountId }, event.at);
      return { result: ended.length, changed: ended.length > 0 };
    });
  }

  limitAllowedApp(
    allowed: Pick<AllowedApp, "appId" | "accountId"> & { personId: string },
    bounds: GrantBounds,
    event: AuditEvent,
  ): Promise<number> {
    return changeCredentials(this.#db, event, async (tx) => {
      const limited = await limitGrantsFor(tx, allowed, bounds);
      return { result: limited, changed: limited > 0 };
    });
  }

  async prune(nowSeconds: number): Promise<void> {
    const ended = nowSeconds - keptSeconds;
    await this.#inPieces(
      (tx) => tx`
        DELETE FROM authorization_codes WHERE digest IN (
          SELECT digest FROM authorization_codes WHERE expires_at <= ${ended} LIMIT ${pruneAtOnce}) RETURNING digest`,
    );
    await this.#inPieces(
      (tx) => tx`
        DELETE FROM device_codes WHERE digest IN (
          SELECT digest FROM device_codes WHERE expires_at <= ${nowSeconds - deviceCodesKeptSeconds}
          LIMIT ${pruneAtOnce}) RETURNING digest`,
    );
    await this.#inPieces(async (tx) => {
      const tokens: { grant_id: string }[] = await tx`
        DELETE FROM refresh_tokens WHERE digest IN (
          SELECT digest FROM refresh_tokens WHERE expires_at <= ${ended} LIMIT ${pruneAtOnce}) RETURNING grant_id`;
      for (const id of new Set(tokens.map((token) => token.grant_id))) await endIdle(tx, id, nowSeconds);
      return tokens;
    });
  }

  /** Deletes rows in steps, until a step deletes fewer rows than its maximum. */
  async #inPieces(forget: (tx: Database) => PromiseLike<unknown[]>): Promise<void> {
    for (let n = 0; n < maxPieces; n++) {
      const forgotten = await this.#write(forget);
      if (forgotten.length < pruneAtOnce) return;
    }
  }

  #write<Result>(work: (tx: Database) => Promise<Result> | PromiseLike<Result>): Promise<Result> {
    return written(this.#db, work);
  }
}

function readCode(db: Database, digest: string): Promise<AuthorizationCode | undefined> {
  return authorizationCodes.first(db`SELECT * FROM authorization_codes WHERE digest = ${digest}`);
}

function readDeviceCode(db: Database, digest: string): Promise<DeviceCode | undefined> {
  return deviceCodes.first(db`SELECT * FROM device_codes WHERE digest = ${digest}`);
}

async function readRefreshToken(
  db: Database,
  digest: string,
): Promise<{ token: RefreshToken; grant: KeyChain } | undefined> {
  const token = await refreshTokens.first(db`SELECT * FROM refresh_tokens WHERE digest = ${digest}`);
  const grant = token && (await readChain(db, { id: token.grantId }));
  return grant && { token, grant };
}

function approvedColumns(
  tx: Database,
  { personId, accountId, membershipId, environment, scopes, tools, quotas }: Authorization,
) {
  return tx`, person_id = ${personId}, account_id = ${accountId}, membership_id = ${membershipId},
    environment = ${environment}, scopes = ${scopes.join(" ")}, tools = ${tools && JSON.stringify(tools)},
    quotas = ${quotas && JSON.stringify(quotas)}`;
}
