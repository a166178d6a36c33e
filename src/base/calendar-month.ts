// Calendar months in UTC, the period of quotas.

/** The month as Unix seconds: `start` is included, `end` is not. */
export interface CalendarMonth {
  start: number;
  end: number;
}

export function calendarMonthOf(unixSeconds: number): CalendarMonth {
  const date = new Date(unixSeconds * 1000);
  const first = (months: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1) / 1000;
  return { start: first(0), end: first(1) };
}
