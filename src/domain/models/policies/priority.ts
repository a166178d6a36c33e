// The priority of waiting requests. Each priority gets a share of the slots, so that no request starves.

/** Lowest first. */
export const priorities = ["low", "normal", "high"] as const;
export type Priority = (typeof priorities)[number];

/** Relative shares of the slots while requests of all priorities wait. */
export const priorityShares: Readonly<Record<Priority, number>> = { low: 1, normal: 4, high: 16 };

/** The priority of a request if nothing else sets one. */
export const defaultPriority: Priority = "normal";

/** Returns the lowest of these priorities. Ignores null and undefined. Returns undefined if none is left. */
export function lowestPriority(some: readonly (Priority | null | undefined)[]): Priority | undefined {
  return priorities.find((priority) => some.includes(priority));
}

export function isWithinPriority(wanted: Priority, most: Priority): boolean {
  return priorities.indexOf(wanted) <= priorities.indexOf(most);
}
