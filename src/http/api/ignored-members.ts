// The members of a request that its model's server was not given, as the value of a header.

/** A member's name or path; what else a client made up does not fit into a header. */
const fitting = /^[\w.[\]-]{1,64}$/;
const maxNames = 32;

/** Names with commas between them; `...` at the end where there are more, or some that cannot be told in a header. */
export function ignoredMembers(members: readonly string[]): string {
  const names = new Set<string>();
  for (const member of members) {
    if (names.size === maxNames) break;
    if (fitting.test(member)) names.add(member);
  }
  const isAll = members.every((member) => names.has(member));
  return [...names, ...(isAll ? [] : ["..."])].join(", ");
}
