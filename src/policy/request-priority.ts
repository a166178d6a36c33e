// The priority that a request asks for, within what its keys and the tier of its account may have.
import { fieldError, forbidden } from "../base/errors.ts";
import { shown } from "../base/text/shown.ts";
import { defaultPriority, isWithinPriority, type Priority, priorities } from "../domain/models/policies/priority.ts";
import type { Principal } from "../domain/principal.ts";

/** The header in which a client asks for it. */
export const priorityHeader = "x-headrace-priority";

/** `asked`: the header as the client sent it. Undefined where there is none: then it is the highest that it may have. */
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
