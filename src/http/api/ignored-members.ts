// Formats the header that lists request members which the model server did not get.

/** Matches a member's name or path that is safe in a header. Clients may send any other names. */
const fitting = /^[\w.[\]-]{1,64}$/;
const maxNames = 32;

/** Joins the names with commas. Ends with `...` if some names were left out. */
export function ignoredMembers(members: readonly string[]): string {
  const names = new Set<string>();
  for (const member of members) {
    if (names.size === maxNames) break;
    if (fitting.test(member)) names.add(member);
  }
  const isAll = members.every((member) => names.has(member));
  return [...names, ...(isAll ? [] : ["..."])].join(", ");
}
