// The state of a number field while typing: a parsed number would turn `1.` into `1`.

/** A string while the text is incomplete; empty if nothing is typed. */
export type TypedNumber = number | string;

/** Returns null for an empty field, and NaN, which is never sent, for a text that is no number. */
export function numberOf(typed: TypedNumber): number | null {
  return typed === "" ? null : Number(typed);
}
