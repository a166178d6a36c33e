// Access tokens of users for MCP servers. Each token is refreshed by one caller at a time, across all processes.
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

/**
 * Seconds before the end of a token at which it is refreshed; a quarter of its lifetime if that is shorter. A token
 * must outlast the call.
 */
const marginSeconds = 60;
/**
 * Lease of a refresh in seconds: longer than a refresh takes, and short enough that a crashed process does not block
 * others for long.
 */
const claimSeconds = 30;
const waitMs = 200;
const maxWaits = 100;
/** Pause after a failed refresh. It doubles with each failure, to spare the authorization server. */
const [firstRestSeconds, maxRestSeconds] = [5, 60];
const maxResting = 10_000;
/** If a token is refused this soon after it was issued, the token is not the cause. */
const freshSeconds = 10;
/** Minimum interval between updates of the last use, which is for display only. */
const usedEverySeconds = 60;

/** Maximum number of scopes that a server may require in addition. */
const maxWanted = 100;

const reasons = {
  refused: "The server's authorization server gives no more tokens for it: access was taken back there, or ended.",
  unrenewable: "Access ended, and the server's authorization server gave nothing to renew it by.",
  rejected: "The server refuses the tokens that its authorization server gives.",
  unreadable: "The tokens were sealed under a secret that this server no longer has.",
} as const;

/** Issued tokens, and the database row that could not be written yet. */
interface Unkept {
  /** Sealed tokens before the refresh. */
  readonly before: string;
  readonly claim: string;
  readonly tokens: ToolTokens;
  readonly row: RenewedTokens;
}

export class PersonConnections implements ToolConnections {
  readonly #options: PersonConnectionsOptions;
  /** Refreshes under way, by connection. Callers in the same process share the result. */
  readonly #renewing = new Map<string, Promise<string | undefined>>();
  /** Failed renewals by connection; times in Unix seconds. */
  readonly #resting = new LruMap<{ restSeconds: number; untilSeconds: number; detail: string }>(maxResting);
  /** Refreshed tokens that still have to be stored, by connection. The refresh token in the database is used up. */
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
    // Tokens must not be sent to a server whose address or authorization server has changed.
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
    // Another caller has replaced the refused token already.
    if (!tokens || tokens.accessToken !== token) return;
    const nowSeconds = clock.nowSeconds();
    const isFresh = nowSeconds < found.renewedAt + freshSeconds;
    if (tokens.refreshToken !== undefined && !isFresh) await store.expire(found, nowSeconds);
    else await this.#break(found, isFresh ? "rejected" : "unrenewable");
  }

  async insufficient(server: string, of: ToolPerson, token: string, scope: string): Promise<void> {
    const { store } = this.#options;
    const found = await store.find(server, of);
    // If the connection was made anew meanwhile, it may have the scopes.
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
      // The connection is read again on the first pass too, because another caller may have refreshed it since.
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

  /** Returns the current token until it expires, and throws `service_unavailable` afterwards. */
  #unrenewed({ id, expiresAt }: StoredToolConnection, { accessToken }: ToolTokens): string {
    const nowSeconds = this.#options.clock.nowSeconds();
    if (expiresAt === null || expiresAt > nowSeconds) return accessToken;
    const { untilSeconds, detail } = this.#resting.get(id) ?? { untilSeconds: nowSeconds, detail: "unknown" };
    throw unavailable(detail, Math.max(1, untilSeconds - nowSeconds));
  }

  /** Writes renewed tokens, in several attempts. If all attempts fail, the next call writes them. */
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
    // The write succeeded although it reported an error.
    if (now?.sealed === row.sealed) return tokens.accessToken;
    // The connection was deleted meanwhile, and only its earlier tokens were revoked. The new tokens are revoked
    // here, because nobody could do so later.
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

/** Returns the times of tokens that were issued just now. */
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
