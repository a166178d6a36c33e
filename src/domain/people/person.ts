// People who sign in, and their memberships in accounts.

import type { AuditEvent } from "../audit.ts";
import type { QuotaRule } from "../limits/quota-rules.ts";
import type { Role } from "./role.ts";

export interface Person {
  /** `usr_…`. */
  id: string;
  /** The e-mail address in lower case, as `normalizedEmail` returns it. Unique. */
  email: string;
  name: string;
  /**
   * True if a mailed link or single sign-on proved that the address belongs to the person who chose the password or
   * other sign-in method.
   */
  isEmailProven: boolean;
  /** True if the person may use `admin:manage` while signed in. */
  isOperator: boolean;
  /** When an operator suspended the person, in Unix seconds. Null if the person is not suspended. */
  suspendedAt: number | null;
  /** Unix seconds. */
  createdAt: number;
}

export interface Membership {
  /** `mbr_…`. */
  id: string;
  accountId: string;
  personId: string;
  role: Role;
  /**
   * Quotas with a window, for each environment. They count all usage of the person as a member, keys and apps included.
   */
  quotas?: readonly QuotaRule[];
  /** Tools that the person may use as a member, in the syntax of a key's `tools`. Null means all. */
  tools?: readonly string[] | null;
  /** True if a plain member sees the usage and requests of the whole account. Owners and admins always do. */
  seesAllUsage: boolean;
  /** Unix seconds. */
  createdAt: number;
}

/** A membership as the account's list of members shows it. */
export interface Member extends Membership {
  email: string;
  name: string;
  /** When the person was last active in a session, in Unix seconds. Null if never. */
  lastSeenAt: number | null;
}

/** A membership as the person's own list of accounts shows it. */
export interface OwnMembership extends Membership {
  accountName: string;
  accountStatus: "active" | "suspended";
}

export type LinkPurpose = "setup" | "invitation" | "password_reset";

/**
 * Describes how a link was handed over. `mail`: only the mailbox got it, so using the link proves the address. `shown`:
 * another person saw the link.
 */
export type LinkDelivery = "mail" | "shown";

/** A link that works only once. Only a digest of its token is stored. */
export interface OneTimeLink {
  /** `lnk_…`. */
  id: string;
  purpose: LinkPurpose;
  /** Hex SHA-256 of the token. */
  digest: string;
  delivery: LinkDelivery;
  /** The invited address; null for a set-up link. */
  email: string | null;
  /** The person whose password is reset. Null for other links. */
  personId: string | null;
  /** The account to which the person is invited. Null for other links. */
  accountId: string | null;
  role: Role | null;
  /** Unix seconds. */
  createdAt: number;
  expiresAt: number;
  usedAt: number | null;
  /** Id of the person or key that made the link. Null if the server or a person at the console made it. */
  createdBy: string | null;
}

/** A person's identity at an OpenID Connect provider. */
export interface Identity {
  issuer: string;
  subject: string;
  personId: string;
  createdAt: number;
}

export interface Passkey {
  /** The WebAuthn credential id, as base64url. */
  id: string;
  personId: string;
  name: string;
  /** COSE key, base64url. */
  publicKey: string;
  counter: number;
  transports: readonly string[];
  /** True if the passkey is stored on more than one device, as in a synced keychain. */
  backedUp: boolean;
  createdAt: number;
  lastUsedAt: number | null;
}

/** Steps that are made in one transaction with their audit event: all or none. They run in the order of the members. */
export interface PeopleChange {
  /** Marks the link as used. Fails with `link_used` if the link was used, has expired, or does not exist. */
  useLink?: { id: string; nowSeconds: number };
  /** Adds a person. Fails with `email_taken` if another person has the address. */
  addPerson?: Person & { passwordHash: string | null };
  /**
   * Links an identity to a person. Fails with `identity_taken` if another person has it, or this person has another
   * identity of the same issuer.
   */
  addIdentity?: Identity;
  /** Adds a membership and its credentials, one for each environment. Fails with `member_already`. */
  addMembership?: Membership;
  /**
   * Sets the password, or removes it if `passwordHash` is null. `insteadOf` is the expected current hash, null for
   * none. Fails with `password_changed` if the current hash differs.
   */
  setPassword?: { personId: string; passwordHash: string | null; insteadOf?: string | null };
  setEmailProven?: { personId: string; isEmailProven: boolean };
  /** Removes all passkeys of the person. */
  removePasskeys?: { personId: string };
  setName?: { personId: string; name: string };
  /**
   * Makes the person an operator, or ends that. Fails with `last_operator` if no operator would be left, or with
   * `person_missing`.
   */
  setOperator?: { personId: string; isOperator: boolean };
  /**
   * Suspends the person, or resumes them with null. Sessions, keys and apps stay, and are refused meanwhile. Fails with
   * `last_operator` if no operator would be left, or with `person_missing`.
   */
  setSuspended?: { personId: string; suspendedAt: number | null };
  /** Ends all sessions and command-line logins of the person, except the session or login `exceptId`. */
  endSessions?: { personId: string; exceptId?: string };
}

export type PeopleConflict =
  | "link_used"
  | "email_taken"
  | "identity_taken"
  | "member_already"
  | "password_changed"
  | "last_operator"
  | "person_missing";

export interface PersonStore {
  findPerson(id: string): Promise<Person | undefined>;
  /** Finds a person by address. `email` must be normalized with `normalizedEmail`. */
  findByEmail(email: string): Promise<(Person & { passwordHash: string | null }) | undefined>;
  findByIdentity(issuer: string, subject: string): Promise<Person | undefined>;
  /** Lists people, oldest first, beginning after the id `after`. */
  listPeople(page: { after: string | undefined; limit: number }): Promise<Person[]>;
  apply(change: PeopleChange, event: AuditEvent): Promise<"done" | PeopleConflict>;
  /**
   * Deletes the person with memberships, sessions, passkeys and identities. Credentials that the memberships bound end
   * too. Refused for operators.
   */
  deletePerson(id: string, event: AuditEvent): Promise<"done" | "missing" | "operator">;

  membershipsOf(personId: string): Promise<OwnMembership[]>;
  findMembership(id: string): Promise<Membership | undefined>;
  /** Lists members, oldest first. */
  listMembers(accountId: string, page: { after: string | undefined; limit: number }): Promise<Member[]>;
  /**
   * If an account has an owner, `setRole` and `removeMembership` return `last_owner` and keep the last one.
   * `removeMembership` revokes the membership's credentials permanently: its keys, and the apps that it allowed, end
   * too.
   */
  setQuotas(id: string, quotas: readonly QuotaRule[], event: AuditEvent): Promise<"done" | "missing" | "last_owner">;
  setTools(id: string, tools: readonly string[] | null, event: AuditEvent): Promise<"done" | "missing" | "last_owner">;
  setSeesAllUsage(id: string, seesAllUsage: boolean, event: AuditEvent): Promise<"done" | "missing" | "last_owner">;
  setRole(id: string, role: Role, event: AuditEvent): Promise<"done" | "missing" | "last_owner">;
  removeMembership(id: string, event: AuditEvent): Promise<"done" | "missing" | "last_owner">;

  /**
   * Stores a link. Unused links of the same purpose for the same person, or the same address and account, are deleted.
   * A set-up link replaces all other set-up links.
   */
  insertLink(link: OneTimeLink, event: AuditEvent): Promise<void>;
  /**
   * Stores the link, unless an unused link of its purpose is valid until after `after`. Returns the existing or the new
   * link.
   */
  ensureLink(link: OneTimeLink, after: number, event: AuditEvent): Promise<OneTimeLink>;
  /** Finds a link, whether it is used or expired or not. */
  findLink(digest: string): Promise<OneTimeLink | undefined>;
  /** Lists unused and unexpired invitations of an account, newest first. */
  listInvitations(accountId: string, nowSeconds: number): Promise<OneTimeLink[]>;
  /** Finds unused and unexpired invitations of an address in all accounts, newest first. */
  findInvitations(email: string, nowSeconds: number): Promise<OneTimeLink[]>;
  /** Deletes an invitation. Returns false if the account has no unused invitation with this id. */
  deleteInvitation(id: string, accountId: string, event: AuditEvent): Promise<boolean>;

  /** Deletes links that were used or expired 30 days ago, some hundred at most. */
  pruneLinks(nowSeconds: number): Promise<void>;

  listPasskeys(personId: string): Promise<Passkey[]>;
  findPasskey(id: string): Promise<Passkey | undefined>;
  /** Stores a passkey. Returns false if one with this credential id exists. */
  insertPasskey(passkey: Passkey, event: AuditEvent): Promise<boolean>;
  /**
   * Records a use of a passkey. Returns false if the passkey does not exist any more, or if its stored counter is not
   * lower than `counter`. Two counters of 0 are accepted.
   */
  passkeyUsed(id: string, counter: number, backedUp: boolean, nowSeconds: number): Promise<boolean>;
  renamePasskey(id: string, personId: string, name: string): Promise<boolean>;
  deletePasskey(id: string, personId: string, event: AuditEvent): Promise<boolean>;
}

/** Returns an address without surrounding blanks and in lower case, so that addresses can be compared. */
export function normalizedEmail(email: string): string {
  return email.trim().normalize("NFC").toLowerCase();
}

/** Returns the id of the credential that a membership has in an environment. */
export function membershipCredentialId(membershipId: string, environment: string): string {
  return `${membershipId}_${environment}`;
}
