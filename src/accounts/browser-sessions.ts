// Browser sessions. A random token is in a cookie that scripts cannot read, and is replaced every hour. A session ends
// when it is idle or too old, or when somebody ends it.

import { createHmac } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { forbidden, GatewayError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { longLived } from "../base/long-lived.ts";
import { currentKey, type Keys, keyRing } from "../domain/key-ring.ts";
import type { Person } from "../domain/people/person.ts";
import type {
  FoundSession,
  Session,
  SessionStore,
  SignedIn,
  SignInMethod,
  SignInProof,
} from "../domain/people/session.ts";
import { newOpaqueToken, opaquePattern, sameSecret, tokenDigest } from "../policy/credentials/opaque-token.ts";
import type { UnknownCredentials } from "../policy/credentials/unknown-credentials.ts";
import { auditEvent } from "../policy/records/audit.ts";
import { cookieIn, hostCookieName, setCookie } from "./cookies.ts";

export interface BrowserSessionsOptions {
  sessions: SessionStore;
  /** The key for CSRF tokens, 32 bytes. */
  csrfKey: Keys;
  /** Reports whether browsers reach the server over https. The cookie is then bound to https. */
  isSecure(): boolean;
  unknown: Pick<UnknownCredentials, "find" | "found">;
  clock: Clock;
  log: Pick<Log, "warn">;
}

/** The origin of a browser's request. */
export interface BrowserOrigin {
  clientAddress: string;
  requestId: string;
  /** The value of `User-Agent`. */
  userAgent: string | null;
}

/** A valid session. `cookie` must be set with the answer; undefined if the browser's cookie is current. */
export interface CurrentSession {
  signedIn: SignedIn;
  cookie: string | undefined;
}

/** The seconds without a request after which a session ends. */
export const idleSeconds = longLived.browserSession.idleMs / 1_000;
/** The seconds after which a session ends even if it is in use. */
const maxSeconds = longLived.browserSession.maxMs / 1_000;
const rotateAfterSeconds = 3_600;
/** The seconds for which requests may still carry the previous token after it was replaced. */
const replacedForSeconds = 60;
const touchAfterSeconds = 60;
const reportEveryMs = 60_000;
const maxUserAgentLength = 300;

export class BrowserSessions {
  readonly #options: BrowserSessionsOptions;
  #reportedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: BrowserSessionsOptions) {
    this.#options = options;
  }

  /** Reports whether the request has a session cookie, without reading the session. */
  hasCookie(header: string | null): boolean {
    return this.#tokenIn(header) !== undefined;
  }

  /**
   * Finds the session. Returns undefined if the cookie is missing or unknown, or the session has ended. Rejects with
   * `rate_limit_exceeded` if the client sent too many unknown cookies.
   */
  async find(header: string | null, origin: BrowserOrigin): Promise<CurrentSession | undefined> {
    const token = this.#tokenIn(header);
    if (token === undefined) return undefined;
    const digest = tokenDigest(token);
    const { sessions, unknown } = this.#options;
    const found = await unknown.find(digest, origin.clientAddress, () => sessions.findByDigest(digest));
    if (!found || !this.#isCurrent(found)) return undefined;
    if (found.replaced && !(await this.#stillCounts(found, origin))) return undefined;
    const cookie = found.replaced ? undefined : await this.#tryRenew(found.session, digest, origin);
    return { signedIn: this.#signedIn(found), cookie };
  }

  /**
   * Starts a session with a new token and returns its cookie. `proof` is the password hash or passkey with which the
   * person signed in. Throws `permission_denied` if the proof is no longer valid: a new session must not survive a
   * change, such as a new password, that ended all others.
   */
  async start(
    person: Person,
    accountId: string | null,
    method: SignInMethod,
    origin: BrowserOrigin,
    proof?: SignInProof,
  ): Promise<{ session: Session; cookie: string }> {
    if (person.suspendedAt !== null) throw suspended();
    const now = this.#options.clock.nowSeconds();
    const token = newOpaqueToken();
    const session: Session = {
      id: `ses_${Bun.randomUUIDv7()}`,
      personId: person.id,
      accountId,
      method,
      userAgent: (origin.userAgent ?? "").slice(0, maxUserAgentLength),
      clientAddress: origin.clientAddress,
      createdAt: now,
      lastSeenAt: now,
      rotatedAt: now,
      expiresAt: now + maxSeconds,
    };
    const event = auditEvent(
      "session.started",
      { type: "person", id: person.id },
      { nowSeconds: now, ...origin },
      { accountId: null, targetId: session.id, detail: { method } },
    );
    const digest = tokenDigest(token);
    if (!(await this.#options.sessions.insert(session, digest, event, proof))) {
      throw forbidden("What you signed in with was changed meanwhile. Sign in once more.", {
        detail: "sign_in_changed_meanwhile",
      });
    }
    this.#options.unknown.found(digest);
    return { session, cookie: this.#cookie(token) };
  }

  /** Ends the session. Returns the `Set-Cookie` value that clears the cookie in the browser. */
  async end({ session, person }: SignedIn, origin: BrowserOrigin): Promise<string> {
    await this.#end(session.id, person.id, origin, "signed_out");
    return this.#cookie("");
  }

  /** Compares the CSRF tokens in constant time. */
  csrfMatches({ csrfToken: current, session }: SignedIn, given: string): boolean {
    return sameSecret(current, given) || this.#isOlder(session.id, given);
  }

  /** Returns the CSRF token that pages send with every change. */
  csrfTokenOf(sessionId: string): string {
    return csrfToken(currentKey(this.#options.csrfKey), sessionId);
  }

  /** Reports whether the CSRF token was made with an older secret, before the secret was rotated. */
  #isOlder(sessionId: string, given: string): boolean {
    const [, ...older] = keyRing(this.#options.csrfKey);
    return older.some((key) => sameSecret(csrfToken(key, sessionId), given));
  }

  #isCurrent({ session }: FoundSession): boolean {
    const now = this.#options.clock.nowSeconds();
    return session.expiresAt > now && session.lastSeenAt + idleSeconds > now;
  }

  /**
   * Reports whether a replaced token is still valid. Concurrent requests may still carry the replaced token, and so may
   * a browser that never received the new one. If both tokens are in use, another person has one of them, so the
   * session ends.
   */
  async #stillCounts({ session }: FoundSession, origin: BrowserOrigin): Promise<boolean> {
    if (this.#options.clock.nowSeconds() < session.rotatedAt + replacedForSeconds) return true;
    if (session.lastSeenAt < session.rotatedAt) return true;
    await this.#end(session.id, session.personId, origin, "replaced_token_used");
    return false;
  }

  /**
   * Renews the session's token if possible. If nothing can be written, a read request is still answered: the token
   * stays, and the next request tries again.
   */
  async #tryRenew(session: Session, digest: string, origin: BrowserOrigin): Promise<string | undefined> {
    try {
      return await this.#renew(session, digest, origin);
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== "service_unavailable") throw error;
      const { clock, log } = this.#options;
      const nowMs = clock.monotonicMs();
      if (nowMs - this.#reportedAtMs >= reportEveryMs) {
        this.#reportedAtMs = nowMs;
        log.warn("session_not_renewed", { detail: error.detail });
      }
      return undefined;
    }
  }

  async #renew(session: Session, digest: string, { clientAddress }: BrowserOrigin): Promise<string | undefined> {
    const { sessions, clock } = this.#options;
    const now = clock.nowSeconds();
    if (session.rotatedAt + rotateAfterSeconds <= now) {
      const token = newOpaqueToken();
      const renewed = tokenDigest(token);
      // A concurrent request may have renewed the token. The answer to that request sets the new cookie.
      if (!(await sessions.rotate(session.id, digest, renewed, now))) return undefined;
      this.#options.unknown.found(renewed);
      return this.#cookie(token);
    }
    const isFirstUse = session.lastSeenAt < session.rotatedAt;
    if (isFirstUse || session.lastSeenAt + touchAfterSeconds <= now || session.clientAddress !== clientAddress) {
      await sessions.touch(session.id, now, clientAddress);
    }
    return undefined;
  }

  async #end(id: string, personId: string, origin: BrowserOrigin, reason: string): Promise<void> {
    const { sessions, clock } = this.#options;
    const event = auditEvent(
      "session.ended",
      { type: "person", id: personId },
      { nowSeconds: clock.nowSeconds(), ...origin },
      { accountId: null, targetId: id, detail: { reason } },
    );
    await sessions.end(id, personId, event);
  }

  #signedIn({ session, person, memberships }: FoundSession): SignedIn {
    const membership = memberships.find(({ accountId }) => accountId === session.accountId) ?? memberships[0];
    return { session, person, memberships, membership, csrfToken: this.csrfTokenOf(session.id) };
  }

  #cookieName(): string {
    return hostCookieName("headrace_session", this.#options.isSecure());
  }

  #tokenIn(header: string | null): string | undefined {
    const token = cookieIn(header, this.#cookieName());
    return token !== undefined && opaquePattern.test(token) ? token : undefined;
  }

  #cookie(token: string): string {
    const ageSeconds = token === "" ? 0 : maxSeconds;
    return setCookie(this.#cookieName(), token, { ageSeconds, isSecure: this.#options.isSecure() });
  }
}

/** Returns the error for a suspended person whose identity is already proven. */
export function suspended(): GatewayError {
  return forbidden(
    "You are suspended on this server: you cannot sign in, and your keys and apps are refused. Nothing of yours was deleted. Ask the operator of this server.",
    { detail: "person_suspended" },
  );
}

function csrfToken(key: Uint8Array, sessionId: string): string {
  return createHmac("sha256", key).update(sessionId).digest("base64url");
}
