// Changes people in one transaction: checks for conflicts first, then writes everything.
import type { AuditEvent } from "../../../domain/audit.ts";
import type { PeopleChange, PeopleConflict } from "../../../domain/people/person.ts";
import type { Database } from "../../sql/database.ts";
import { addMembership, forgetLinksBy } from "./membership-changes.ts";
import { peopleWithPasswords } from "./person-rows.ts";
import { type SignedOut, signOut } from "./sign-outs.ts";

/** Checks for a conflict before anything is written, so that a conflict leaves nothing behind. */
export async function conflictOf(tx: Database, change: PeopleChange): Promise<PeopleConflict | undefined> {
  const { useLink, addPerson, addIdentity, addMembership: added, setPassword, setOperator, setSuspended } = change;
  if (useLink) {
    const usable: unknown[] = await tx`
      SELECT id FROM one_time_links
      WHERE id = ${useLink.id} AND used_at IS NULL AND expires_at > ${useLink.nowSeconds}`;
    if (usable.length === 0) return "link_used";
  }
  if (addPerson) {
    const others: unknown[] = await tx`SELECT id FROM people WHERE email = ${addPerson.email}`;
    if (others.length > 0) return "email_taken";
  }
  if (addIdentity) {
    const { issuer, subject, personId } = addIdentity;
    const others: unknown[] = await tx`
      SELECT subject FROM identities
      WHERE issuer = ${issuer} AND (subject = ${subject} OR person_id = ${personId}) LIMIT 1`;
    if (others.length > 0) return "identity_taken";
  }
  if (added) {
    const same: unknown[] = await tx`
      SELECT id FROM memberships WHERE account_id = ${added.accountId} AND person_id = ${added.personId}`;
    if (same.length > 0) return "member_already";
  }
  if (setPassword?.insteadOf !== undefined) {
    const [row]: { password_hash: string | null }[] = await tx`
      SELECT password_hash FROM people WHERE id = ${setPassword.personId}`;
    if (row?.password_hash !== setPassword.insteadOf) return "password_changed";
  }
  const personId = setOperator?.personId ?? setSuspended?.personId;
  if (personId === undefined) return undefined;
  const [person]: { is_operator: number }[] = await tx`SELECT is_operator FROM people WHERE id = ${personId}`;
  if (!person) return "person_missing";
  const isSuspended = (setSuspended?.suspendedAt ?? null) !== null && Number(person.is_operator) === 1;
  if (setOperator?.isOperator === false || isSuspended) {
    const others: unknown[] = await tx`
      SELECT id FROM people WHERE is_operator = 1 AND suspended_at IS NULL AND id <> ${personId} LIMIT 1`;
    if (others.length === 0) return "last_operator";
  }
  return undefined;
}

/** Writes the change. Returns the credentials and sessions that it ended. */
export async function writeChange(tx: Database, change: PeopleChange, event: AuditEvent): Promise<SignedOut> {
  const { useLink, addPerson, addIdentity, setPassword, setEmailProven, removePasskeys, setName } = change;
  const { setOperator, setSuspended, endSessions } = change;
  if (useLink) await tx`UPDATE one_time_links SET used_at = ${useLink.nowSeconds} WHERE id = ${useLink.id}`;
  if (addPerson) await tx`INSERT INTO people ${tx(peopleWithPasswords.row(addPerson))}`;
  if (addIdentity) {
    const { issuer, subject, personId, createdAt } = addIdentity;
    await tx`INSERT INTO identities ${tx({ issuer, subject, person_id: personId, created_at: createdAt })}`;
  }
  if (change.addMembership) {
    const [person]: { email: string }[] =
      await tx`SELECT email FROM people WHERE id = ${change.addMembership.personId}`;
    if (person) await addMembership(tx, change.addMembership, person.email);
  }
  if (setPassword) {
    const { personId, passwordHash } = setPassword;
    await tx`UPDATE people SET password_hash = ${passwordHash} WHERE id = ${personId}`;
    // An earlier reset link could set another password, and so undo this change.
    await tx`
      UPDATE one_time_links SET used_at = ${event.at}
      WHERE purpose = 'password_reset' AND person_id = ${personId} AND used_at IS NULL`;
  }
  if (setEmailProven) {
    const flag = setEmailProven.isEmailProven ? 1 : 0;
    await tx`UPDATE people SET email_proven = ${flag} WHERE id = ${setEmailProven.personId}`;
  }
  if (removePasskeys) await tx`DELETE FROM passkeys WHERE person_id = ${removePasskeys.personId}`;
  if (setName) await tx`UPDATE people SET name = ${setName.name} WHERE id = ${setName.personId}`;
  if (setOperator) {
    const flag = setOperator.isOperator ? 1 : 0;
    await tx`UPDATE people SET is_operator = ${flag} WHERE id = ${setOperator.personId}`;
    if (!setOperator.isOperator) await forgetLinksBy(tx, setOperator.personId);
  }
  if (setSuspended) {
    await tx`UPDATE people SET suspended_at = ${setSuspended.suspendedAt} WHERE id = ${setSuspended.personId}`;
  }
  return endSessions ? signOut(tx, endSessions, event) : { sessions: 0, logins: 0 };
}
