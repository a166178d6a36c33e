// Ties a form to what it was shown for: one session, one purpose, one request with all that the person was told about it.
import { createHmac } from "node:crypto";
import { GatewayError } from "../../domain/errors.ts";
import type { SignedIn } from "../../domain/session.ts";
import { sameSecret } from "../../policy/opaque-token.ts";

export interface TicketSubject {
  purpose: "consent" | "device";
  signedIn: Pick<SignedIn, "session">;
  /** Everything that the person decides about. */
  about: readonly string[];
}

/** `key`: 32 bytes. Other uses of it never begin as the text here does. */
export function formTicket(key: Uint8Array, { purpose, signedIn, about }: TicketSubject): string {
  const text = JSON.stringify(["form-ticket", purpose, signedIn.session.id, ...about]);
  return createHmac("sha256", key).update(text).digest("base64url");
}

/** In constant time. */
export function hasTicket(key: Uint8Array, subject: TicketSubject, given: string | undefined): boolean {
  return sameSecret(formTicket(key, subject), given ?? "");
}

/** Throws `permission_denied`, which becomes an error page. */
export function requireTicket(key: Uint8Array, subject: TicketSubject, given: string | undefined): void {
  if (hasTicket(key, subject, given)) return;
  throw new GatewayError(
    "permission_denied",
    "This form is out of date: what it was shown for has changed. Go back to the app or device and start again.",
    { detail: "form_ticket" },
  );
}
