// Returns the changed members of a form, because others may have changed the rest meanwhile.

/** `now` and `before` have the same members, named as in the API. */
export function changedMembers<Body extends object>(now: Body, before: Body): Partial<Body> {
  const isSame = (name: string) =>
    JSON.stringify(now[name as keyof Body]) === JSON.stringify(before[name as keyof Body]);
  return Object.fromEntries(Object.entries(now).filter(([name]) => !isSame(name))) as Partial<Body>;
}
