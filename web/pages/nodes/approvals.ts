// What a node may serve: some models by id, or whatever it announces.

/** Stands for every model that it announces, now and later. */
export const everyModel = "*";

export function isEvery(approved: readonly string[]): boolean {
  return approved.includes(everyModel);
}

/** In words, for a token or a node. */
export function approvalText(approved: readonly string[]): string {
  if (isEvery(approved)) return "All announced models";
  return approved.length === 0 ? "None before approval" : approved.join(", ");
}

/** Those that it announces come as it names them; those that it no longer does, behind. */
export function modelIdsOf(announced: readonly { id: string }[], approved: readonly string[]): string[] {
  return [...new Set([...announced.map(({ id }) => id), ...approved.filter((id) => id !== everyModel)])];
}

export function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((id) => other.includes(id));
}
