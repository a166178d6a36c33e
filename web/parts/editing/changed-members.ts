// Finds the members of a form that the user changed. Only these are sent: others may have changed the rest meanwhile.

/** Returns the members of `now` that differ from `before`. Both have the same members, named as in the API. */
export function changedMembers<Body extends object>(now: Body, before: Body): Partial<Body> {
  const isSame = (name: string) =>
    JSON.stringify(now[name as keyof Body]) === JSON.stringify(before[name as keyof Body]);
  return Object.fromEntries(Object.entries(now).filter(([name]) => !isSame(name))) as Partial<Body>;
}
