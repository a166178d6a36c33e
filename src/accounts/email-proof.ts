// Ends every credential that other people could have, when a person first proves their address.
import type { PeopleChange } from "../domain/people/person.ts";

/**
 * Returns the change. Before this proof, another person may have used the address, for example one who saw the
 * invitation. Their password, passkeys, sessions and logins must no longer lead to the data of the address's owner.
 */
export function firstProof(personId: string) {
  return {
    setEmailProven: { personId, isEmailProven: true },
    setPassword: { personId, passwordHash: null },
    removePasskeys: { personId },
    endSessions: { personId },
  } satisfies PeopleChange;
}

/** The detail of audit events for this change. */
export const firstProofDetail = { email_proven: true, ended: ["password", "passkeys", "sessions", "logins"] };
