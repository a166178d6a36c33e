// What ends when somebody shows for the first time that an address is theirs: whatever others could sign in with there.
import type { PeopleChange } from "../domain/people/person.ts";

/**
 * Until then somebody else may have come with the address, such as whoever was shown the invitation. Their password,
 * passkeys, sessions and logins must not lead to what is the owner's from now on.
 */
export function firstProof(personId: string) {
  return {
    setEmailProven: { personId, isEmailProven: true },
    setPassword: { personId, passwordHash: null },
    removePasskeys: { personId },
    endSessions: { personId },
  } satisfies PeopleChange;
}

/** What audit events call it. */
export const firstProofDetail = { email_proven: true, ended: ["password", "passkeys", "sessions", "logins"] };
