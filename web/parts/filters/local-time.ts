// Converts times for date fields.

/** Returns the value of a date field in the reader's time zone, such as `2026-10-25T02:30`. */
export function localText(seconds: number): string {
  const moment = new Date(seconds * 1000);
  // The offset is subtracted in UTC, because local arithmetic fails around a change of daylight saving time.
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
