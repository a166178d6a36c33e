// The value of the header that lists request members which the model server did not get.

/** Matches a member's name or path. Other names that a client invents are not safe in a header. */
const fitting = /^[\w.[\]-]{1,64}$/;
const maxNames = 32;

/** Joins names with commas; ends with `...` if there are more names, or names that do not fit into a header. */
export function ignoredMembers(members: readonly string[]): string {
  const names = new Set<string>();
  for (const member of members) {
    if (names.size === maxNames) break;
    if (fitting.test(member)) names.add(member);
  }
  const isAll = members.every((member) => names.has(member));
  return [...names, ...(isAll ? [] : ["..."])].join(", ");
}
