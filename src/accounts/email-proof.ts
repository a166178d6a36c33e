// Ends every credential that another person may have created for an address, when the address's owner first proves it.
import type { PeopleChange } from "../domain/people/person.ts";

/**
 * Returns the change that ends the credentials from before the proof. Until then, another person may have used the
 * address, for example after seeing the invitation. That person's password, passkeys, sessions and logins must no
 * longer lead to the data of the address's owner.
 */
export function firstProof(personId: string) {
  return {
    setEmailProven: { personId, isEmailProven: true },
    setPassword: { personId, passwordHash: null },
    removePasskeys: { personId },
    endSessions: { personId },
  } satisfies PeopleChange;
}

/** The detail of audit events about a first proof. */
export const firstProofDetail = { email_proven: true, ended: ["password", "passkeys", "sessions", "logins"] };
