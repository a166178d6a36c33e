// People who sign in, and the accounts that they are members of.

import type { AuditEvent } from "../audit.ts";
import type { QuotaRule } from "../limits/quota-rules.ts";
import type { Role } from "./role.ts";

export interface Person {
  /** `usr_…`. */
  id: string;
  /** The address in the form of `normalizedEmail`: one person for each address. */
  email: string;
  name: string;
  /** Whether whoever chose how the person signs in has shown that the address is theirs, by a mailed link or single sign-on. */
  isEmailProven: boolean;
  /** May operate the installation, `admin:manage`, while signed in. */
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
  /** Quotas per window, in each environment, of all that the person does and makes as a member. */
  quotas?: readonly QuotaRule[];
  /** Tools that the person may use as a member, as of a key; null: all. */
  tools?: readonly string[] | null;
  /** Whether a member sees the usage and requests of the whole account, as owners and admins do. */
  seesAllUsage: boolean;
  /** Unix seconds. */
  createdAt: number;
}

/** A membership as lists show it. */
export interface Member extends Membership {
  email: string;
  name: string;
  /** Unix seconds of the last sign of one of the person's sessions; null for none. */
  lastSeenAt: number | null;
}

/** A membership as its person sees it. */
export interface OwnMembership extends Membership {
  accountName: string;
  accountStatus: "active" | "suspended";
}

export type LinkPurpose = "setup" | "invitation" | "password_reset";

/** `mail`: to the address that it is for, and shown to nobody; whoever opens it has that mailbox. */
export type LinkDelivery = "mail" | "shown";

/** A link that works once. Only the digest of its token is kept. */
export interface OneTimeLink {
  /** `lnk_…`. */
  id: string;
  purpose: LinkPurpose;
  /** Hex SHA-256 of the token. */
  digest: string;
  delivery: LinkDelivery;
  /** Whom it is for: the invited address; null for a set-up link. */
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
  /** Id of the person or key that made it; null for the server or the console. */
  createdBy: string | null;
}

/** A sign-in at an identity provider that stands for a person. */
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
  /** Whether it is kept beyond one device. */
  backedUp: boolean;
  createdAt: number;
  lastUsedAt: number | null;
}

/** A change in one transaction, with its audit event; all of it or nothing. The order is that of the members. */
export interface PeopleChange {
  /** Takes the link; `link_used` where it was used, has expired at that time, or is not there. */
  useLink?: { id: string; nowSeconds: number };
  /** `email_taken` where somebody has the address. */
  addPerson?: Person & { passwordHash: string | null };
  /** `identity_taken` where it stands for somebody already, or the person has another one of that issuer. */
  addIdentity?: Identity;
  /**
   * Adds it with its credentials, one for each environment; `member_already` where the person is one of that account.
   */
  addMembership?: Membership;
  /** null: no password, from now on or, with `insteadOf`, before; `password_changed` where it is another one by now. */
  setPassword?: { personId: string; passwordHash: string | null; insteadOf?: string | null };
  setEmailProven?: { personId: string; isEmailProven: boolean };
  /** All of the person's. */
  removePasskeys?: { personId: string };
  setName?: { personId: string; name: string };
  /** `last_operator` where nobody would be one any more; `person_missing` where the person is there no more. */
  setOperator?: { personId: string; isOperator: boolean };
  /** All sessions of the person, and logins of the command line, but one; `exceptId` is of either. */
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
  /** `email` as `normalizedEmail` has it. */
  findByEmail(email: string): Promise<(Person & { passwordHash: string | null }) | undefined>;
  findByIdentity(issuer: string, subject: string): Promise<Person | undefined>;
  /** People by id, which begins with the time; those after `after`. */
  listPeople(page: { after: string | undefined; limit: number }): Promise<Person[]>;
  apply(change: PeopleChange, event: AuditEvent): Promise<"done" | PeopleConflict>;
  /**
   * Deletes memberships, sessions, passkeys and identities, too; what the memberships bound ends. An operator has to be
   * none first.
   */
  deletePerson(id: string, event: AuditEvent): Promise<"done" | "missing" | "operator">;

  membershipsOf(personId: string): Promise<OwnMembership[]>;
  findMembership(id: string): Promise<Membership | undefined>;
  /** Oldest first. */
  listMembers(accountId: string, page: { after: string | undefined; limit: number }): Promise<Member[]>;
  /**
   * Both refuse, with `last_owner`, to leave an account that has an owner without one. A removed membership's credentials are
   * revoked for good, so its keys and the apps that it allowed end with it.
   */
  setQuotas(id: string, quotas: readonly QuotaRule[], event: AuditEvent): Promise<"done" | "missing" | "last_owner">;
  setTools(id: string, tools: readonly string[] | null, event: AuditEvent): Promise<"done" | "missing" | "last_owner">;
  setSeesAllUsage(id: string, seesAllUsage: boolean, event: AuditEvent): Promise<"done" | "missing" | "last_owner">;
  setRole(id: string, role: Role, event: AuditEvent): Promise<"done" | "missing" | "last_owner">;
  removeMembership(id: string, event: AuditEvent): Promise<"done" | "missing" | "last_owner">;

  /** Replaces the unused ones of the same purpose for the same person, or address and account, or, for set-up, all. */
  insertLink(link: OneTimeLink, event: AuditEvent): Promise<void>;
  /** Unless there is an unused one of its purpose that is good until after `after`; gives the one that there is then. */
  ensureLink(link: OneTimeLink, after: number, event: AuditEvent): Promise<OneTimeLink>;
  /** Whatever its state. */
  findLink(digest: string): Promise<OneTimeLink | undefined>;
  /** Unused and unexpired invitations of an account, newest first. */
  listInvitations(accountId: string, nowSeconds: number): Promise<OneTimeLink[]>;
  /** Unused and unexpired invitations for an address, of whatever account, newest first. */
  findInvitations(email: string, nowSeconds: number): Promise<OneTimeLink[]>;
  /** False where there is none that is unused. */
  deleteInvitation(id: string, accountId: string, event: AuditEvent): Promise<boolean>;

  /** Forgets links that were used or expired 30 days ago; at most some hundreds at a time. */
  pruneLinks(nowSeconds: number): Promise<void>;

  listPasskeys(personId: string): Promise<Passkey[]>;
  findPasskey(id: string): Promise<Passkey | undefined>;
  /** False where the credential is known already. */
  insertPasskey(passkey: Passkey, event: AuditEvent): Promise<boolean>;
  /** False where it is not there any more, or was used with this counter or a later one. */
  passkeyUsed(id: string, counter: number, backedUp: boolean, nowSeconds: number): Promise<boolean>;
  renamePasskey(id: string, personId: string, name: string): Promise<boolean>;
  deletePasskey(id: string, personId: string, event: AuditEvent): Promise<boolean>;
}

/** Addresses that differ only in case or in blanks around them are one. */
export function normalizedEmail(email: string): string {
  return email.trim().normalize("NFC").toLowerCase();
}

/** Id of the credential record with which a member acts in an environment. */
export function membershipCredentialId(membershipId: string, environment: string): string {
  return `${membershipId}_${environment}`;
}
