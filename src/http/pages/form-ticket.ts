// Ties a form to its context: one session, one purpose, and one request with everything that the person was shown.
import { createHmac } from "node:crypto";
import { forbidden } from "../../base/errors.ts";
import { currentKey, type Keys, keyRing } from "../../domain/key-ring.ts";
import type { SignedIn } from "../../domain/people/session.ts";
import { sameSecret } from "../../policy/credentials/opaque-token.ts";

export interface TicketSubject {
  purpose: "consent" | "device";
  signedIn: Pick<SignedIn, "session">;
  /** The facts that the person decides about. */
  about: readonly string[];
}

/** Returns the ticket. `keys` have 32 bytes each. The texts of their other uses never begin like this one. */
export function formTicket(keys: Keys, subject: TicketSubject): string {
  return ticketUnder(currentKey(keys), subject);
}

function ticketUnder(key: Uint8Array, { purpose, signedIn, about }: TicketSubject): string {
  const text = JSON.stringify(["form-ticket", purpose, signedIn.session.id, ...about]);
  return createHmac("sha256", key).update(text).digest("base64url");
}

/** Compares in constant time. */
export function hasTicket(keys: Keys, subject: TicketSubject, given: string | undefined): boolean {
  return keyRing(keys).some((key) => sameSecret(ticketUnder(key, subject), given ?? ""));
}

/** Throws `permission_denied`, which becomes an error page. */
export function requireTicket(keys: Keys, subject: TicketSubject, given: string | undefined): void {
  if (hasTicket(keys, subject, given)) return;
  throw forbidden(
    "This form is out of date, because the request has changed. Go back to the app or device and start again.",
    { detail: "form_ticket" },
  );
}
