// Sessions: a browser in which a person is signed in.
import type { AuditEvent } from "../audit.ts";
import type { OwnMembership, Person } from "./person.ts";

export type SignInMethod = "password" | "passkey" | "sso" | "link";

export interface Session {
  /** `ses_…`; no secret. */
  id: string;
  personId: string;
  /** The account that is looked at; null where the person is a member of none. */
  accountId: string | null;
  method: SignInMethod;
  /** The name that the browser gave itself; at most 300 characters. */
  userAgent: string;
  clientAddress: string;
  /** Unix seconds. */
  createdAt: number;
  lastSeenAt: number;
  /** When its token was last replaced. After `lastSeenAt` as long as the newest one was not used. */
  rotatedAt: number;
  /** Whatever is done in it. */
  expiresAt: number;
}

/** The session of a token, as it was found. */
export interface FoundSession {
  session: Session;
  person: Person;
  memberships: OwnMembership[];
  /** Whether the token is the one before the newest: it is on its way out. */
  replaced: boolean;
}

/** The credential with which somebody signed in, as it was when it was looked at. */
export type SignInProof = { passwordHash: string } | { passkeyId: string };

/** Digests are hex SHA-256 of the token in the cookie. */
export interface SessionStore {
  /** False, with nothing written, where the person has no such password or passkey any more. */
  insert(session: Session, digest: string, event: AuditEvent, proof?: SignInProof): Promise<boolean>;
  /** Finds a session by its newest token or the one before. One read. */
  findByDigest(digest: string): Promise<FoundSession | undefined>;
  /** Puts the digest in the place of the newest, which becomes the one before. False where `from` is no longer the newest. */
  rotate(id: string, from: string, to: string, nowSeconds: number): Promise<boolean>;
  /** Never moves a time back. */
  touch(id: string, nowSeconds: number, clientAddress: string): Promise<void>;
  setAccount(id: string, accountId: string): Promise<void>;
  /** Those that have not ended, newest first. */
  list(personId: string, nowSeconds: number): Promise<Session[]>;
  /** False where the person has no such session. */
  end(id: string, personId: string, event: AuditEvent): Promise<boolean>;
  /** Sessions, and logins of the command line, but the one with that id. How many ended. */
  endAll(personId: string, exceptId: string | null, event: AuditEvent): Promise<number>;
  /** Forgets those that ended before; at most some hundreds at a time. */
  prune(nowSeconds: number, idleSeconds: number): Promise<void>;
}

/** A person at a browser, as the rest of the program sees them. */
export interface SignedIn {
  session: Session;
  person: Person;
  memberships: readonly OwnMembership[];
  /** That of the session's account; undefined where the person is a member of none. */
  membership: OwnMembership | undefined;
  /** A token to be sent back with everything that changes something. Bound to the session. */
  csrfToken: string;
}
