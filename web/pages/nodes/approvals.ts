// The models that a node may serve: some by id, or everything it announces.

/** Stands for every model that the node announces, now and later. */
export const everyModel = "*";

export function isEvery(approved: readonly string[]): boolean {
  return approved.includes(everyModel);
}

/** Describes the approval of a token or a node. */
export function approvalText(approved: readonly string[]): string {
  if (isEvery(approved)) return "All announced models";
  return approved.length === 0 ? "None before approval" : approved.join(", ");
}

/** Returns the announced models first, then approved models that are no longer announced. */
export function modelIdsOf(announced: readonly { id: string }[], approved: readonly string[]): string[] {
  return [...new Set([...announced.map(({ id }) => id), ...approved.filter((id) => id !== everyModel)])];
}

export function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((id) => other.includes(id));
}
