// People, memberships, one-time links and passkeys between their rows and their records.

import type {
  LinkDelivery,
  LinkPurpose,
  Member,
  Membership,
  OneTimeLink,
  Passkey,
  Person,
} from "../../../domain/people/person.ts";
import type { Role } from "../../../domain/people/role.ts";
import { integer, words } from "../credential-rows.ts";

/** int8 comes as a number from SQLite and as text from PostgreSQL. */
type Integer = number | string;

export interface PersonRow {
  id: string;
  email: string;
  name: string;
  password_hash: string | null;
  email_proven: number | boolean;
  is_operator: number | boolean;
  created_at: Integer;
}

export interface MembershipRow {
  id: string;
  account_id: string;
  person_id: string;
  role: string;
  created_at: Integer;
}

export interface MemberRow extends MembershipRow {
  email: string;
  name: string;
  last_seen_at: Integer | null;
}

export interface LinkRow {
  id: string;
  purpose: string;
  digest: string;
  delivery: string;
  email: string | null;
  person_id: string | null;
  account_id: string | null;
  role: string | null;
  created_by: string | null;
  created_at: Integer;
  expires_at: Integer;
  used_at: Integer | null;
}

export interface PasskeyRow {
  id: string;
  person_id: string;
  name: string;
  public_key: string;
  counter: Integer;
  transports: string;
  backed_up: number | boolean;
  created_at: Integer;
  last_used_at: Integer | null;
}

export function personFromRow(row: PersonRow): Person {
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    isEmailProven: Boolean(row.email_proven),
    isOperator: Boolean(row.is_operator),
    createdAt: Number(row.created_at),
  };
}

export function personToRow(person: Person & { passwordHash: string | null }): PersonRow {
  return {
    id: person.id,
    email: person.email,
    name: person.name,
    password_hash: person.passwordHash,
    email_proven: person.isEmailProven ? 1 : 0,
    is_operator: person.isOperator ? 1 : 0,
    created_at: person.createdAt,
  };
}

export function membershipFromRow(row: MembershipRow): Membership {
  return {
    id: row.id,
    accountId: row.account_id,
    personId: row.person_id,
    role: row.role as Role,
    createdAt: Number(row.created_at),
  };
}

export function membershipToRow(membership: Membership): MembershipRow {
  return {
    id: membership.id,
    account_id: membership.accountId,
    person_id: membership.personId,
    role: membership.role,
    created_at: membership.createdAt,
  };
}

export function memberFromRow(row: MemberRow): Member {
  return { ...membershipFromRow(row), email: row.email, name: row.name, lastSeenAt: integer(row.last_seen_at) };
}

export function linkFromRow(row: LinkRow): OneTimeLink {
  return {
    id: row.id,
    purpose: row.purpose as LinkPurpose,
    digest: row.digest,
    delivery: row.delivery as LinkDelivery,
    email: row.email,
    personId: row.person_id,
    accountId: row.account_id,
    role: row.role as Role | null,
    createdAt: Number(row.created_at),
    expiresAt: Number(row.expires_at),
    usedAt: integer(row.used_at),
    createdBy: row.created_by,
  };
}

export function linkToRow(link: OneTimeLink): LinkRow {
  return {
    id: link.id,
    purpose: link.purpose,
    digest: link.digest,
    delivery: link.delivery,
    email: link.email,
    person_id: link.personId,
    account_id: link.accountId,
    role: link.role,
    created_by: link.createdBy,
    created_at: link.createdAt,
    expires_at: link.expiresAt,
    used_at: link.usedAt,
  };
}

export function passkeyFromRow(row: PasskeyRow): Passkey {
  return {
    id: row.id,
    personId: row.person_id,
    name: row.name,
    publicKey: row.public_key,
    counter: Number(row.counter),
    transports: words(row.transports),
    backedUp: Boolean(row.backed_up),
    createdAt: Number(row.created_at),
    lastUsedAt: integer(row.last_used_at),
  };
}

export function passkeyToRow(passkey: Passkey): PasskeyRow {
  return {
    id: passkey.id,
    person_id: passkey.personId,
    name: passkey.name,
    public_key: passkey.publicKey,
    counter: passkey.counter,
    transports: passkey.transports.join(" "),
    backed_up: passkey.backedUp ? 1 : 0,
    created_at: passkey.createdAt,
    last_used_at: passkey.lastUsedAt,
  };
}
