// Whether the long forms of the tests run: `npm run test:long`; and what the short ones allow a busy machine.

export const long = process.env["TEST_LONG"] === "1";

/**
 * The time that something may take, in milliseconds. A machine that does other work as well may take five times as long
 * in the short form: that tells a deadline that holds from one that does not, and no more.
 */
export function withinMs(ms: number): number {
  return long ? ms : 5 * ms;
}
