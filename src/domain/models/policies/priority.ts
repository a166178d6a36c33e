// How urgent a request is: whose turn it is where requests wait, as shares, so that nobody starves.

/** Least first. */
export const priorities = ["low", "normal", "high"] as const;
export type Priority = (typeof priorities)[number];

/** Places that each gets of those that are wanted by all, relative to the others. */
export const priorityShares: Readonly<Record<Priority, number>> = { low: 1, normal: 4, high: 16 };

/** The one of requests of which nobody says otherwise. */
export const defaultPriority: Priority = "normal";

/** The lowest of them; null says nothing. Undefined: none says anything. */
export function lowestPriority(some: readonly (Priority | null | undefined)[]): Priority | undefined {
  return priorities.find((priority) => some.includes(priority));
}

export function isWithinPriority(wanted: Priority, most: Priority): boolean {
  return priorities.indexOf(wanted) <= priorities.indexOf(most);
}
