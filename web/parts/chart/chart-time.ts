// Formats a chart's times: hours in the reader's zone, days and months in UTC, as usage is counted.
import { bucketEnd, type UsageBucket } from "../../api/usage.ts";
import { at } from "../words/figures.ts";
import { timeFormat } from "../words/formats.ts";

/** A bucket of the API, or a length in seconds if the page merged buckets. */
export type ChartBucket = UsageBucket | number;

export function endOf(bucket: ChartBucket, start: number): number {
  return typeof bucket === "number" ? start + bucket : bucketEnd(bucket, start);
}

const utc = { timeZone: "UTC" } as const;
const clock = timeFormat({ hour: "numeric", minute: "2-digit" });
const formats = {
  local: {
    day: timeFormat({ day: "numeric", month: "short" }),
    month: timeFormat({ month: "short" }),
    year: timeFormat({ year: "numeric" }),
  },
  utc: {
    day: timeFormat({ day: "numeric", month: "short", ...utc }),
    month: timeFormat({ month: "short", ...utc }),
    year: timeFormat({ year: "numeric", ...utc }),
  },
};
const wholeDay = timeFormat({
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
  ...utc,
});
const wholeMonth = timeFormat({ month: "long", year: "numeric", ...utc });

export function isUtc(bucket: ChartBucket | undefined): boolean {
  return bucket === "day" || bucket === "month";
}

/** Reports whether the reader's time zone differs from UTC. */
export function isReaderElsewhere(): boolean {
  return new Date().getTimezoneOffset() !== 0;
}

/** Returns the name of a bucket, or of a moment if there are no buckets. */
export function nameOfTime(seconds: number, bucket: ChartBucket | undefined): string {
  const ms = seconds * 1000;
  if (bucket === "month") return wholeMonth().format(ms);
  if (bucket === "day") return `${wholeDay().format(ms)}${isReaderElsewhere() ? " (UTC)" : ""}`;
  if (bucket === undefined) return at(seconds);
  return `${at(seconds)} – ${clock().format(endOf(bucket, seconds) * 1000)}`;
}

/** Returns two-line labels of an axis: times or days, and below them the start of a day or year. */
export function axisLabels(splits: readonly number[], step: number, bucket: ChartBucket | undefined): string[] {
  const { day, month, year } = formats[isUtc(bucket) ? "utc" : "local"];
  let before = "";
  return splits.map((split) => {
    const ms = split * 1000;
    const [label, above] =
      step < 86_400
        ? [clock().format(ms), day().format(ms)]
        : step < 27 * 86_400
          ? [day().format(ms), year().format(ms)]
          : [month().format(ms), year().format(ms)];
    const isNew = above !== before;
    before = above;
    return isNew ? `${label}\n${above}` : label;
  });
}

/** Returns a date whose local fields are the reader's time, or UTC for buckets of days and months. */
export function dateOf(seconds: number, bucket: ChartBucket | undefined): Date {
  const date = new Date(seconds * 1000);
  return isUtc(bucket) ? new Date(date.getTime() + date.getTimezoneOffset() * 60_000) : date;
}

/** Returns the allowed distances between marks in seconds, none shorter than a bucket. */
export function stepsOf(bucket: ChartBucket | undefined): number[] {
  const day = 86_400;
  const hours = [3_600, 7_200, 10_800, 21_600, 43_200];
  const days = [day, 2 * day, 3 * day, 7 * day, 14 * day];
  const months = [30 * day, 61 * day, 91 * day, 182 * day, 365 * day, 730 * day];
  if (bucket === "month") return months;
  if (bucket === "day") return [...days, ...months];
  if (typeof bucket === "number") return [...hours.filter((step) => step % bucket === 0), ...days, ...months];
  return bucket === "hour" ? [...hours, ...days, ...months] : [60, 300, 900, 1_800, ...hours, ...days, ...months];
}
