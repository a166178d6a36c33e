// Sessions. In each, a person is signed in with a browser.
import type { AuditEvent } from "../audit.ts";
import type { OwnMembership, Person } from "./person.ts";

export type SignInMethod = "password" | "passkey" | "sso" | "link";

export interface Session {
  /** `ses_…`; no secret. */
  id: string;
  personId: string;
  /** The account that the person has selected. Null if the person belongs to no account. */
  accountId: string | null;
  method: SignInMethod;
  /** The browser's user agent; at most 300 characters. */
  userAgent: string;
  clientAddress: string;
  /** Unix seconds. */
  createdAt: number;
  lastSeenAt: number;
  /**
   * Unix seconds when the session's token was last replaced. Until the newest token is used, this is later than
   * `lastSeenAt`.
   */
  rotatedAt: number;
  /** Unix seconds when the session ends, even if it is in use. */
  expiresAt: number;
}

/** A session that was found by its token. */
export interface FoundSession {
  session: Session;
  person: Person;
  memberships: OwnMembership[];
  /** True if the token is the previous one, which works only for a short time after it was replaced. */
  replaced: boolean;
}

/** The password hash or passkey with which a person just signed in. */
export type SignInProof = { passwordHash: string } | { passkeyId: string };

/** Stores sessions. Digests are hex SHA-256 of the token in the cookie. */
export interface SessionStore {
  /**
   * Adds a session. If the person no longer has the password or passkey of `proof`, changes nothing and returns false.
   */
  insert(session: Session, digest: string, event: AuditEvent, proof?: SignInProof): Promise<boolean>;
  /** Finds a session by the digest of its newest or its previous token, in one read. */
  findByDigest(digest: string): Promise<FoundSession | undefined>;
  /** Replaces the newest digest, which becomes the previous one. Returns false if `from` is not the newest digest. */
  rotate(id: string, from: string, to: string, nowSeconds: number): Promise<boolean>;
  /** Records the use of a session. Never moves a time back. */
  touch(id: string, nowSeconds: number, clientAddress: string): Promise<void>;
  setAccount(id: string, accountId: string): Promise<void>;
  /** Lists sessions that have not ended, newest first. */
  list(personId: string, nowSeconds: number): Promise<Session[]>;
  /** Ends a session. Returns false if the person has no such session. */
  end(id: string, personId: string, event: AuditEvent): Promise<boolean>;
  /** Ends all sessions and command-line logins of the person, except `exceptId`. Returns their number. */
  endAll(personId: string, exceptId: string | null, event: AuditEvent): Promise<number>;
  /** Deletes sessions that have ended, some hundred at most. */
  prune(nowSeconds: number, idleSeconds: number): Promise<void>;
}

/** A signed-in person in a browser. */
export interface SignedIn {
  session: Session;
  person: Person;
  memberships: readonly OwnMembership[];
  /** The person's membership in the selected account. Undefined if the person belongs to no account. */
  membership: OwnMembership | undefined;
  /** The session's CSRF token. Browsers must send it with every change. */
  csrfToken: string;
}
