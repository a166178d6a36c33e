// The rank of suspenders: members, accounts and operators, of keys and apps.
import { forbidden } from "../../base/errors.ts";
import {
  ownOnly,
  type Principal,
  type Suspender,
  type SuspensionChange,
  suspenderAfter,
} from "../../domain/principal.ts";

/** Returns the rank of the principal at the endpoints of its account, where an operator counts as any other caller. */
export function suspenderOf(principal: Principal): Suspender {
  return ownOnly(principal) === null ? "account" : "member";
}

/** Throws if the change resumes what a higher rank suspended. */
export function requireResumable(stored: Suspender | null, change: SuspensionChange, what: "key" | "app"): void {
  if (change.isSuspended || suspenderAfter(stored, change) === null) return;
  if (stored === "operator") {
    throw forbidden(`An operator suspended this ${what}, and only an operator can resume it.`);
  }
  throw forbidden(`The account suspended this ${what}. Ask an owner or admin of the account to resume it.`);
}
