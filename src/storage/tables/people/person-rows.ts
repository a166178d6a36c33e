// Converts people, memberships, one-time links and passkeys between rows and records.
import type { Member, Membership, OneTimeLink, OwnMembership, Passkey, Person } from "../../../domain/people/person.ts";
import { flag, integer, json, jsonList, named, table, text, words } from "../../sql/table.ts";

export const people = table<Person>({
  id: text,
  email: text,
  name: text,
  isEmailProven: named("email_proven", flag),
  isOperator: flag,
  suspendedAt: integer,
  createdAt: integer,
});
/** People with the hashes of their passwords, only for checking and setting passwords. */
export const peopleWithPasswords = table<Person & { passwordHash: string | null }>({
  ...people.columns,
  passwordHash: text,
});

export const memberships = table<Membership>({
  id: text,
  accountId: text,
  personId: text,
  role: text,
  quotas: jsonList,
  tools: json,
  seesAllUsage: flag,
  createdAt: integer,
});
/** Memberships with the data of their people. */
export const members = table<Member>({ ...memberships.columns, email: text, name: text, lastSeenAt: integer });
/** Memberships with the data of their accounts. */
export const ownMemberships = table<OwnMembership>({
  ...memberships.columns,
  accountName: text,
  accountStatus: text,
});

export const oneTimeLinks = table<OneTimeLink>({
  id: text,
  purpose: text,
  digest: text,
  delivery: text,
  email: text,
  personId: text,
  accountId: text,
  role: text,
  createdAt: integer,
  expiresAt: integer,
  usedAt: integer,
  createdBy: text,
});

export const passkeys = table<Passkey>({
  id: text,
  personId: text,
  name: text,
  publicKey: text,
  counter: integer,
  transports: words,
  backedUp: flag,
  createdAt: integer,
  lastUsedAt: integer,
});
