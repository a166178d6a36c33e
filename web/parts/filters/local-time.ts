// The text of date fields.

/** Returns the value of a date field in the reader's time zone, such as `2026-10-25T02:30`. */
export function localText(seconds: number): string {
  const moment = new Date(seconds * 1000);
  // The offset is taken off in UTC: local times on the other side of a change of the clocks have another offset.
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
