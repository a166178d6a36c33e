// What of a form differs from how it began: others may have changed the rest meanwhile.

/** `now` and `before` have the same members, as the API names them. */
export function changedMembers<Body extends object>(now: Body, before: Body): Partial<Body> {
  const isSame = (name: string) =>
    JSON.stringify(now[name as keyof Body]) === JSON.stringify(before[name as keyof Body]);
  return Object.fromEntries(Object.entries(now).filter(([name]) => !isSame(name))) as Partial<Body>;
}
