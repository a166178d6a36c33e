// A number as its field has it while somebody types: set anew before it is finished, `1.` would lose its point.

/** Text where it is not, or not only, a number yet; empty where nothing is typed. */
export type TypedNumber = number | string;

/** Null where nothing is typed; NaN, which is never sent, where it is no number, such as a lone point. */
export function numberOf(typed: TypedNumber): number | null {
  return typed === "" ? null : Number(typed);
}
