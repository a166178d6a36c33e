// Reads the priority of a request, within what its keys and its account's tier allow.
import { fieldError, forbidden } from "../base/errors.ts";
import { shown } from "../base/text/shown.ts";
import { defaultPriority, isWithinPriority, type Priority, priorities } from "../domain/models/policies/priority.ts";
import type { Principal } from "../domain/principal.ts";

/** The request header for the priority. */
export const priorityHeader = "x-headrace-priority";

/**
 * Checks the value `asked` of the header. Returns undefined without the header; the request then gets the highest
 * permitted priority.
 */
export function priorityAsked(
  asked: string | null,
  { priority: most = defaultPriority }: Pick<Principal, "priority">,
): Priority | undefined {
  if (asked === null) return undefined;
  const priority = priorities.find((one) => one === asked.trim().toLowerCase());
  if (priority === undefined) {
    throw fieldError(
      priorityHeader,
      `must be ${priorities.join(", ")}, and at most ${most} for this key (got ${shown(asked)}). Leave it out for ${most}.`,
    );
  }
  if (isWithinPriority(priority, most)) return priority;
  throw forbidden(
    `${priorityHeader}: must be at most ${most}, the highest that this key may have (got ${priority}). Leave it out for ${most}, or use a key that may have more.`,
  );
}
