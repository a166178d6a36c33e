// The time buckets (UTC) of usage sums.
import { calendarMonthOf } from "../../base/calendar-month.ts";
import type { UsageBucket } from "./usage.ts";

const secondsOf = { minute: 60, hour: 3_600, day: 86_400 };

/** Returns the start of the bucket that contains a time. Both are Unix seconds, not before 1970. */
export function bucketStart(bucket: UsageBucket, at: number): number {
  return bucket === "month" ? calendarMonthOf(at).start : at - (at % secondsOf[bucket]);
}

/** Returns the start of the bucket after the one that contains a time. */
export function bucketEnd(bucket: UsageBucket, at: number): number {
  return bucket === "month" ? calendarMonthOf(at).end : bucketStart(bucket, at) + secondsOf[bucket];
}
