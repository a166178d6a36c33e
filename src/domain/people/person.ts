// People who sign in, and their memberships in accounts.

import type { AuditEvent } from "../audit.ts";
import type { QuotaRule } from "../limits/quota-rules.ts";
import type { Role } from "./role.ts";

export interface Person {
  /** `usr_…`. */
  id: string;
  /** The address in the form of `normalizedEmail`; unique. */
  email: string;
  name: string;
  /**
   * True if a mailed link or single sign-on proved that the address belongs to the person who chose the sign-in method.
   */
  isEmailProven: boolean;
  /** May use `admin:manage` while signed in. */
  isOperator: boolean;
  /** Unix seconds. */
  createdAt: number;
}

export interface Membership {
  /** `mbr_…`. */
  id: string;
  accountId: string;
  personId: string;
  role: Role;
  /** Quotas per window, in each environment, of everything that the person does and makes as a member. */
  quotas?: readonly QuotaRule[];
  /** Tools that the person may use as a member, as for a key; null: all. */
  tools?: readonly string[] | null;
  /** True if a member sees the usage and requests of the whole account, as owners and admins do. */
  seesAllUsage: boolean;
  /** Unix seconds. */
  createdAt: number;
}

/** A membership as lists show it. */
export interface Member extends Membership {
  email: string;
  name: string;
  /** Unix seconds of the last activity in one of the person's sessions; null: never. */
  lastSeenAt: number | null;
}

/** A membership as its person sees it. */
export interface OwnMembership extends Membership {
  accountName: string;
  accountStatus: "active" | "suspended";
}

export type LinkPurpose = "setup" | "invitation" | "password_reset";

/**
 * `mail`: only the mailbox of its address has the link, which proves the address. `shown`: the link was shown to
 * another person.
 */
export type LinkDelivery = "mail" | "shown";

/** A link that works once. Only the digest of its token is stored. */
export interface OneTimeLink {
  /** `lnk_…`. */
  id: string;
  purpose: LinkPurpose;
  /** Hex SHA-256 of the token. */
  digest: string;
  delivery: LinkDelivery;
  /** The invited address; null for a set-up link. */
  email: string | null;
  /** The person of a password reset. */
  personId: string | null;
  /** The account of an invitation. */
  accountId: string | null;
  role: Role | null;
  /** Unix seconds. */
  createdAt: number;
  expiresAt: number;
  usedAt: number | null;
  /** Id of the person or key that made the link; null for the server or the console. */
  createdBy: string | null;
}

/** A person's identity at an identity provider. */
export interface Identity {
  issuer: string;
  subject: string;
  personId: string;
  createdAt: number;
}

export interface Passkey {
  /** Credential id, base64url. */
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

/** A change in one transaction with its audit event, all or nothing. Steps run in the order of the members. */
export interface PeopleChange {
  /** Uses the link. Fails with `link_used` if it was used, has expired, or does not exist. */
  useLink?: { id: string; nowSeconds: number };
  /** Fails with `email_taken` if a person has the address. */
  addPerson?: Person & { passwordHash: string | null };
  /** Fails with `identity_taken` if a person has the identity, or this person has another identity of that issuer. */
  addIdentity?: Identity;
  /** Adds the membership with its credentials, one for each environment. Fails with `member_already`. */
  addMembership?: Membership;
  /**
   * A null `passwordHash` removes the password; a null `insteadOf` expects that there was none. Fails with
   * `password_changed` if it was changed meanwhile.
   */
  setPassword?: { personId: string; passwordHash: string | null; insteadOf?: string | null };
  setEmailProven?: { personId: string; isEmailProven: boolean };
  /** Removes all passkeys of the person. */
  removePasskeys?: { personId: string };
  setName?: { personId: string; name: string };
  /** Fails with `last_operator` if no operator would be left, and with `person_missing`. */
  setOperator?: { personId: string; isOperator: boolean };
  /** Ends all sessions and command-line logins of the person except `exceptId`, of either kind. */
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
  /** `email` is in the form of `normalizedEmail`. */
  findByEmail(email: string): Promise<(Person & { passwordHash: string | null }) | undefined>;
  findByIdentity(issuer: string, subject: string): Promise<Person | undefined>;
  /** Lists people by id, which is ordered by time, after `after`. */
  listPeople(page: { after: string | undefined; limit: number }): Promise<Person[]>;
  apply(change: PeopleChange, event: AuditEvent): Promise<"done" | PeopleConflict>;
  /**
   * Deletes the person with memberships, sessions, passkeys and identities, and ends all that the memberships bound.
   * Operators are refused.
   */
  deletePerson(id: string, event: AuditEvent): Promise<"done" | "missing" | "operator">;

  membershipsOf(personId: string): Promise<OwnMembership[]>;
  findMembership(id: string): Promise<Membership | undefined>;
  /** Lists members, oldest first. */
  listMembers(accountId: string, page: { after: string | undefined; limit: number }): Promise<Member[]>;
  /**
   * `setRole` and `removeMembership` refuse, with `last_owner`, to leave an account that has an owner without one.
   * Removing a membership revokes its credentials permanently, so its keys and the apps that it allowed end with it.
   */
  setQuotas(id: string, quotas: readonly QuotaRule[], event: AuditEvent): Promise<"done" | "missing" | "last_owner">;
  setTools(id: string, tools: readonly string[] | null, event: AuditEvent): Promise<"done" | "missing" | "last_owner">;
  setSeesAllUsage(id: string, seesAllUsage: boolean, event: AuditEvent): Promise<"done" | "missing" | "last_owner">;
  setRole(id: string, role: Role, event: AuditEvent): Promise<"done" | "missing" | "last_owner">;
  removeMembership(id: string, event: AuditEvent): Promise<"done" | "missing" | "last_owner">;

  /** Replaces unused links of the same purpose for the same person, or address and account; for set-up, all. */
  insertLink(link: OneTimeLink, event: AuditEvent): Promise<void>;
  /**
   * Inserts the link unless an unused one of its purpose is valid until after `after`. Returns the existing or new
   * link.
   */
  ensureLink(link: OneTimeLink, after: number, event: AuditEvent): Promise<OneTimeLink>;
  /** Finds a link in any state. */
  findLink(digest: string): Promise<OneTimeLink | undefined>;
  /** Lists unused and unexpired invitations of an account, newest first. */
  listInvitations(accountId: string, nowSeconds: number): Promise<OneTimeLink[]>;
  /** Finds unused and unexpired invitations of an address in all accounts, newest first. */
  findInvitations(email: string, nowSeconds: number): Promise<OneTimeLink[]>;
  /** Returns false if there is no unused invitation with this id in the account. */
  deleteInvitation(id: string, accountId: string, event: AuditEvent): Promise<boolean>;

  /** Deletes links that were used or expired 30 days ago, at most some hundred at a time. */
  pruneLinks(nowSeconds: number): Promise<void>;

  listPasskeys(personId: string): Promise<Passkey[]>;
  findPasskey(id: string): Promise<Passkey | undefined>;
  /** Returns false if a passkey with this credential id exists. */
  insertPasskey(passkey: Passkey, event: AuditEvent): Promise<boolean>;
  /**
   * Records a use of a passkey. Returns false if the passkey does not exist any more, or was used with this counter or
   * a later one.
   */
  passkeyUsed(id: string, counter: number, backedUp: boolean, nowSeconds: number): Promise<boolean>;
  renamePasskey(id: string, personId: string, name: string): Promise<boolean>;
  deletePasskey(id: string, personId: string, event: AuditEvent): Promise<boolean>;
}

/** Returns an address in the form in which addresses are compared: without surrounding blanks, in lower case. */
export function normalizedEmail(email: string): string {
  return email.trim().normalize("NFC").toLowerCase();
}

/** Returns the id of a member's credential record in an environment. */
export function membershipCredentialId(membershipId: string, environment: string): string {
  return `${membershipId}_${environment}`;
}
