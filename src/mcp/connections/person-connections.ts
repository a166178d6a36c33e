// Access tokens of users for MCP servers. A token is refreshed by only one process at a time.
import { randomBytes } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { AuditLog } from "../../domain/audit.ts";
import type { McpServers } from "../../domain/tools/mcp-server.ts";
import type {
  RenewedTokens,
  StoredToolConnection,
  ToolConnectionStore,
  ToolConnections,
  ToolPerson,
} from "../../domain/tools/tool-connection.ts";
import { LruMap } from "../../policy/lru-map.ts";
import { auditEvent } from "../../policy/records/audit.ts";
import type { GivenTokens, ToolAuthorization } from "./authorization.ts";
import { isConnectedTo, personalServer } from "./personal-server.ts";
import type { ToolSeals, ToolTokens } from "./tool-tokens.ts";

export interface PersonConnectionsOptions {
  servers: Pick<McpServers, "find">;
  store: ToolConnectionStore;
  authorization: Pick<ToolAuthorization, "renew" | "revoke">;
  seals: ToolSeals;
  audit: Pick<AuditLog, "append">;
  clock: Pick<Clock, "nowSeconds">;
  log: Log;
  /** Waits while another process refreshes. Tests replace this function. */
  sleep?: (ms: number) => Promise<unknown>;
}

/** Seconds before its expiry at which a token is refreshed, or a quarter of its lifetime if that is shorter. */
const marginSeconds = 60;
/**
 * Seconds for which a process has the right to refresh a token: longer than a refresh takes, short enough if the
 * process crashes.
 */
const claimSeconds = 30;
const waitMs = 200;
const maxWaits = 100;
/** Seconds without attempts after a failed refresh; doubled with each failure, up to the maximum. */
const [firstRestSeconds, maxRestSeconds] = [5, 60];
const maxResting = 10_000;
/** If a token is refused within this many seconds of its issue, refreshing it would not help. */
const freshSeconds = 10;
/** Minimum seconds between updates of the last use, which is only displayed. */
const usedEverySeconds = 60;

/** Maximum additional scopes that a server may require. */
const maxWanted = 100;

const reasons = {
  refused: "The server's authorization server gives no more tokens for it: access was taken back there, or ended.",
  unrenewable: "Access ended, and the server's authorization server gave nothing to renew it by.",
  rejected: "The server refuses the tokens that its authorization server gives.",
  unreadable: "The tokens were sealed under a secret that this server no longer has.",
} as const;

/** Refreshed tokens whose database row could not be written yet. */
interface Unkept {
  /** The encrypted tokens that were in the database before the refresh. */
  readonly before: string;
  readonly claim: string;
  readonly tokens: ToolTokens;
  readonly row: RenewedTokens;
}

export class PersonConnections implements ToolConnections {
  readonly #options: PersonConnectionsOptions;
  /** Running refreshes by connection id. Callers in this process share them. */
  readonly #renewing = new Map<string, Promise<string | undefined>>();
  /** Failed refreshes by connection id; times in Unix seconds. */
  readonly #resting = new LruMap<{ restSeconds: number; untilSeconds: number; detail: string }>(maxResting);
  /**
   * Refreshed tokens that are not stored yet, by connection id. They must not be lost: the refresh token in the
   * database is used up.
   */
  readonly #unkept = new LruMap<Unkept>(maxResting);

  constructor(options: PersonConnectionsOptions) {
    this.#options = options;
  }

  async connectionId(server: string, of: ToolPerson): Promise<string | undefined> {
    return (await this.#options.store.find(server, of))?.id;
  }

  async accessToken(server: string, of: ToolPerson): Promise<string | undefined> {
    const { servers, store, clock } = this.#options;
    const personal = personalServer(servers.find(server));
    const found = personal && (await store.find(server, of));
    // Never send a token if the server's address or its authorization server has changed.
    if (!found || found.brokenBecause !== null || !isConnectedTo(personal, found)) return undefined;
    const token = isDue(found, clock.nowSeconds()) ? await this.#renewed(found) : await this.#tokenOf(found);
    if (token !== undefined) await this.#used(found);
    return token;
  }

  async refused(server: string, of: ToolPerson, token: string): Promise<void> {
    const { store, clock } = this.#options;
    const found = await store.find(server, of);
    if (!found || found.brokenBecause !== null) return;
    const tokens = this.#open(found);
    // Another caller has already replaced the refused token.
    if (!tokens || tokens.accessToken !== token) return;
    const nowSeconds = clock.nowSeconds();
    const isFresh = nowSeconds < found.renewedAt + freshSeconds;
    if (tokens.refreshToken !== undefined && !isFresh) await store.expire(found, nowSeconds);
    else await this.#break(found, isFresh ? "rejected" : "unrenewable");
  }

  async insufficient(server: string, of: ToolPerson, token: string, scope: string): Promise<void> {
    const { store } = this.#options;
    const found = await store.find(server, of);
    // The user may have connected again meanwhile, with the required scopes.
    if (!found || this.#open(found)?.accessToken !== token) return;
    const wanted = scopesOf(scope).filter((one) => !found.scopes.includes(one));
    if (wanted.some((one) => !found.wantedScopes.includes(one))) {
      await store.want(found, [...new Set([...found.wantedScopes, ...wanted])].slice(0, maxWanted));
    }
  }

  #renewed(found: StoredToolConnection): Promise<string | undefined> {
    const under = this.#renewing.get(found.id);
    if (under) return under;
    const renewing = this.#renew(found).finally(() => this.#renewing.delete(found.id));
    this.#renewing.set(found.id, renewing);
    return renewing;
  }

  async #renew(stale: StoredToolConnection): Promise<string | undefined> {
    const { store, clock, sleep = Bun.sleep } = this.#options;
    const unkept = this.#unkept.get(stale.id);
    if (unkept?.before === stale.sealed) return this.#keep(stale, unkept);
    const name = randomBytes(16).toString("base64url");
    for (let waits = 0; waits < maxWaits; waits++) {
      // Read the connection again, because another process may have refreshed it.
      const found = await store.find(stale.server, stale);
      if (found?.id !== stale.id || found.brokenBecause !== null) return undefined;
      const nowSeconds = clock.nowSeconds();
      if (!isDue(found, nowSeconds)) return this.#tokenOf(found);
      const tokens = nowSeconds < (this.#resting.get(found.id)?.untilSeconds ?? 0) ? this.#open(found) : undefined;
      if (tokens) return this.#unrenewed(found, tokens);
      const untilSeconds = nowSeconds + claimSeconds;
      if (await store.claim(found, { name, nowSeconds, untilSeconds })) return this.#renewClaimed(found, name);
      await sleep(waitMs);
    }
    throw unavailable("another process renews it");
  }

  async #renewClaimed(found: StoredToolConnection, claim: string): Promise<string | undefined> {
    const { store, authorization, clock } = this.#options;
    const tokens = this.#open(found);
    const { refreshToken } = tokens ?? {};
    if (!tokens || refreshToken === undefined) {
      const isOver = (found.expiresAt ?? 0) <= clock.nowSeconds();
      if (tokens && !isOver) {
        await store.settle(found.id, claim, "unchanged");
        return tokens.accessToken;
      }
      await this.#break(found, tokens ? "unrenewable" : "unreadable", claim);
      return undefined;
    }
    let given: GivenTokens | "refused";
    try {
      given = await authorization.renew(found.url, { ...tokens, refreshToken });
    } catch (error) {
      await store.settle(found.id, claim, "unchanged");
      this.#rest(found.id, error instanceof GatewayError ? (error.detail ?? error.code) : "unknown");
      return this.#unrenewed(found, tokens);
    }
    this.#resting.delete(found.id);
    if (given === "refused") {
      await this.#break(found, "refused", claim);
      return undefined;
    }
    const renewed = { ...tokens, accessToken: given.access_token, refreshToken: given.refresh_token ?? refreshToken };
    const row: RenewedTokens = {
      sealed: this.#options.seals.sealTokens(found.id, renewed),
      ...lifeOf(given, clock.nowSeconds()),
      scopes: given.scope === undefined ? found.scopes : scopesOf(given.scope),
    };
    return await this.#keep(found, { before: found.sealed, claim, tokens: renewed, row });
  }

  #rest(id: string, detail: string): void {
    const last = this.#resting.get(id);
    const restSeconds = last ? Math.min(2 * last.restSeconds, maxRestSeconds) : firstRestSeconds;
    this.#resting.set(id, { restSeconds, untilSeconds: this.#options.clock.nowSeconds() + restSeconds, detail });
  }

  /** Returns the current token, which could not be refreshed. Throws `service_unavailable` if the token has expired. */
  #unrenewed({ id, expiresAt }: StoredToolConnection, { accessToken }: ToolTokens): string {
    const nowSeconds = this.#options.clock.nowSeconds();
    if (expiresAt === null || expiresAt > nowSeconds) return accessToken;
    const { untilSeconds, detail } = this.#resting.get(id) ?? { untilSeconds: nowSeconds, detail: "unknown" };
    throw unavailable(detail, Math.max(1, untilSeconds - nowSeconds));
  }

  /** Stores refreshed tokens, in several attempts. If all fail, the next call tries again. */
  async #keep(found: StoredToolConnection, unkept: Unkept): Promise<string | undefined> {
    const { store, authorization, log, sleep = Bun.sleep } = this.#options;
    const { claim, tokens, row } = unkept;
    this.#unkept.set(found.id, unkept);
    for (let tries = 1; ; tries++) {
      try {
        const isKept = await store.settle(found.id, claim, row);
        this.#unkept.delete(found.id);
        if (isKept) return tokens.accessToken;
        break;
      } catch (error) {
        log.warn("tool_tokens_not_kept", { server: found.server, connection_id: found.id, tries });
        if (tries === 5) throw error;
        await sleep(waitMs * tries);
      }
    }
    const now = await store.find(found.server, found);
    // The write has succeeded although it reported an error.
    if (now?.sealed === row.sealed) return tokens.accessToken;
    // The connection was deleted meanwhile, and only its old tokens were revoked. Revoke the new ones now; later nobody
    // could.
    if (!now) await authorization.revoke(found.url, tokens);
    return undefined;
  }

  async #tokenOf(found: StoredToolConnection): Promise<string | undefined> {
    const tokens = this.#open(found);
    if (!tokens) await this.#break(found, "unreadable");
    return tokens?.accessToken;
  }

  #open({ id, sealed }: StoredToolConnection): ToolTokens | undefined {
    try {
      return this.#options.seals.openTokens(id, sealed);
    } catch {
      return undefined;
    }
  }

  async #break(found: StoredToolConnection, why: keyof typeof reasons, claim?: string): Promise<void> {
    const { store, audit, clock } = this.#options;
    const brokenBecause = reasons[why];
    if (claim === undefined) await store.breakOff(found, brokenBecause);
    else await store.settle(found.id, claim, { brokenBecause });
    const origin = { nowSeconds: clock.nowSeconds(), clientAddress: null, requestId: null };
    const about = { accountId: found.accountId, targetId: found.id };
    const detail = { server: found.server, person_id: found.personId, because: why };
    await audit.append([auditEvent("tool_connection.broken", { type: "system" }, origin, { ...about, detail })]);
  }

  async #used({ id, lastUsedAt }: StoredToolConnection): Promise<void> {
    const nowSeconds = this.#options.clock.nowSeconds();
    if (lastUsedAt !== null && nowSeconds < lastUsedAt + usedEverySeconds) return;
    await this.#options.store.used(id, nowSeconds);
  }
}

function isDue({ expiresAt, renewedAt }: StoredToolConnection, nowSeconds: number): boolean {
  if (expiresAt === null) return false;
  return nowSeconds >= expiresAt - Math.min(marginSeconds, Math.floor((expiresAt - renewedAt) / 4));
}

/** Returns the expiry and issue times of new tokens. */
export function lifeOf({ expires_in: seconds }: GivenTokens, nowSeconds: number) {
  const lasts = seconds !== undefined && Number.isFinite(seconds) && seconds >= 0;
  return {
    expiresAt: lasts ? nowSeconds + Math.min(Math.floor(seconds), 10 * 365 * 86_400) : null,
    renewedAt: nowSeconds,
  };
}

/** Splits scopes at spaces and drops unprintable ones, because users read them. */
export function scopesOf(scope: string): string[] {
  return scope
    .split(/\s/)
    .filter((word) => /^[\x21-\x7e]{1,200}$/.test(word))
    .slice(0, 100);
}

function unavailable(detail: string, retryAfterSeconds = firstRestSeconds): GatewayError {
  const message = `Your account at this MCP server cannot be renewed at the moment, as its authorization server does not answer. Retry in ${retryAfterSeconds} s.`;
  return new GatewayError("service_unavailable", message, { detail: `tool connection: ${detail}`, retryAfterSeconds });
}
