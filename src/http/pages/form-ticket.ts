// Signs a hidden form field, the ticket. It ties the form to the session, to its purpose, and to the facts that the
// page showed.
import { createHmac } from "node:crypto";
import { forbidden } from "../../base/errors.ts";
import { currentKey, type Keys, keyRing } from "../../domain/key-ring.ts";
import type { SignedIn } from "../../domain/people/session.ts";
import { sameSecret } from "../../policy/credentials/opaque-token.ts";

export interface TicketSubject {
  purpose: "consent" | "device";
  signedIn: Pick<SignedIn, "session">;
  /** The facts that the page showed, on which the person decides. */
  about: readonly string[];
}

/**
 * Returns the ticket. `keys` have 32 bytes each. They may also sign other data, because the prefixes of the signed
 * texts differ.
 */
export function formTicket(keys: Keys, subject: TicketSubject): string {
  return ticketUnder(currentKey(keys), subject);
}

function ticketUnder(key: Uint8Array, { purpose, signedIn, about }: TicketSubject): string {
  const text = JSON.stringify(["form-ticket", purpose, signedIn.session.id, ...about]);
  return createHmac("sha256", key).update(text).digest("base64url");
}

/** Reports whether the ticket is valid, in constant time. */
export function hasTicket(keys: Keys, subject: TicketSubject, given: string | undefined): boolean {
  return keyRing(keys).some((key) => sameSecret(ticketUnder(key, subject), given ?? ""));
}

/** Throws `permission_denied` if the ticket is invalid. */
export function requireTicket(keys: Keys, subject: TicketSubject, given: string | undefined): void {
  if (hasTicket(keys, subject, given)) return;
  throw forbidden(
    "This form is out of date, because the request has changed. Go back to the app or device and start again.",
    { detail: "form_ticket" },
  );
}
