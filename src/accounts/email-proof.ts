// What ends when a person first proves their address: every credential that others could have.
import type { PeopleChange } from "../domain/people/person.ts";

/**
 * Until then another person may have come with the address, for example one who was shown the invitation. Their
 * password, passkeys, sessions and logins must not lead to what belongs to the address's owner from now on.
 */
export function firstProof(personId: string) {
  return {
    setEmailProven: { personId, isEmailProven: true },
    setPassword: { personId, passwordHash: null },
    removePasskeys: { personId },
    endSessions: { personId },
  } satisfies PeopleChange;
}

/** Its name in audit events. */
export const firstProofDetail = { email_proven: true, ended: ["password", "passkeys", "sessions", "logins"] };
