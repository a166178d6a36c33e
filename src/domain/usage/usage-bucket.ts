// The time buckets (UTC) of usage sums.
import { calendarMonthOf } from "../../base/calendar-month.ts";
import type { UsageBucket } from "./usage.ts";

const secondsOf = { hour: 3_600, day: 86_400 };

/** Start of the bucket that a time lies in; both in Unix seconds, not before 1970. */
export function bucketStart(bucket: UsageBucket, at: number): number {
  return bucket === "month" ? calendarMonthOf(at).start : at - (at % secondsOf[bucket]);
}

/** Start of the bucket after the one that a time lies in. */
export function bucketEnd(bucket: UsageBucket, at: number): number {
  return bucket === "month" ? calendarMonthOf(at).end : bucketStart(bucket, at) + secondsOf[bucket];
}
