// Formats the header that lists request members which were not passed on to the model server.

/** Matches a name or path that is safe in a header. Clients may send any other names too. */
const fitting = /^[\w.[\]-]{1,64}$/;
const maxNames = 32;

/** Joins the names with commas. If some names are left out, the list ends with `...`. */
export function ignoredMembers(members: readonly string[]): string {
  const names = new Set<string>();
  for (const member of members) {
    if (names.size === maxNames) break;
    if (fitting.test(member)) names.add(member);
  }
  const isAll = members.every((member) => names.has(member));
  return [...names, ...(isAll ? [] : ["..."])].join(", ");
}
