// Sessions: a browser in which a person is signed in.
import type { AuditEvent } from "../audit.ts";
import type { OwnMembership, Person } from "./person.ts";

export type SignInMethod = "password" | "passkey" | "sso" | "link";

export interface Session {
  /** `ses_…`; no secret. */
  id: string;
  personId: string;
  /** The selected account; null if the person is a member of none. */
  accountId: string | null;
  method: SignInMethod;
  /** The browser's user agent; at most 300 characters. */
  userAgent: string;
  clientAddress: string;
  /** Unix seconds. */
  createdAt: number;
  lastSeenAt: number;
  /**
   * Unix seconds when the session's token was last replaced. Later than `lastSeenAt` until the newest token is used.
   */
  rotatedAt: number;
  /** Unix seconds when the session ends, however active it is. */
  expiresAt: number;
}

/** The session of a token, as found. */
export interface FoundSession {
  session: Session;
  person: Person;
  memberships: OwnMembership[];
  /** True if the token is the previous one, which works only for a short time after its replacement. */
  replaced: boolean;
}

/** The credential of a sign-in, as it was when checked. */
export type SignInProof = { passwordHash: string } | { passkeyId: string };

/** Digests are hex SHA-256 of the token in the cookie. */
export interface SessionStore {
  /**
   * Adds a session. Returns false without a change if the person does not have the password or passkey of `proof` any
   * more.
   */
  insert(session: Session, digest: string, event: AuditEvent, proof?: SignInProof): Promise<boolean>;
  /** Finds a session by the digest of its newest token or of the token before, in one read. */
  findByDigest(digest: string): Promise<FoundSession | undefined>;
  /** Replaces the newest digest, which becomes the previous one. Returns false if `from` is not the newest. */
  rotate(id: string, from: string, to: string, nowSeconds: number): Promise<boolean>;
  /** Updates the last use. Never moves a time back. */
  touch(id: string, nowSeconds: number, clientAddress: string): Promise<void>;
  setAccount(id: string, accountId: string): Promise<void>;
  /** Lists sessions that have not ended, newest first. */
  list(personId: string, nowSeconds: number): Promise<Session[]>;
  /** Returns false if the person has no such session. */
  end(id: string, personId: string, event: AuditEvent): Promise<boolean>;
  /** Ends all sessions and command-line logins except `exceptId`. Returns their number. */
  endAll(personId: string, exceptId: string | null, event: AuditEvent): Promise<number>;
  /** Deletes sessions that have ended, at most some hundred at a time. */
  prune(nowSeconds: number, idleSeconds: number): Promise<void>;
}

/** A signed-in person in a browser. */
export interface SignedIn {
  session: Session;
  person: Person;
  memberships: readonly OwnMembership[];
  /** The membership in the session's account. Undefined if the person is a member of none. */
  membership: OwnMembership | undefined;
  /** A token, bound to the session, that every change must send back. */
  csrfToken: string;
}
