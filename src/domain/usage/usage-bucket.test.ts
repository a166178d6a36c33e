// Time buckets: whole hours, days and calendar months in UTC.
import { expect, test } from "bun:test";
import { usageBuckets } from "./usage.ts";
import { bucketEnd, bucketStart } from "./usage-bucket.ts";

const at = (iso: string) => Date.parse(iso) / 1000;

test("assigns a time to its hour, day and month in UTC", () => {
  const time = at("2024-02-29T23:59:59Z");
  expect(usageBuckets.map((bucket) => [bucketStart(bucket, time), bucketEnd(bucket, time)])).toEqual([
    [at("2024-02-29T23:00:00Z"), at("2024-03-01T00:00:00Z")],
    [at("2024-02-29T00:00:00Z"), at("2024-03-01T00:00:00Z")],
    [at("2024-02-01T00:00:00Z"), at("2024-03-01T00:00:00Z")],
  ]);
});

test("includes a bucket's start but not its end, also across years", () => {
  for (const bucket of usageBuckets) {
    const start = at("2025-01-01T00:00:00Z");
    expect(bucketStart(bucket, start)).toBe(start);
    expect(bucketEnd(bucket, start - 1)).toBe(start);
  }
  expect(bucketStart("month", 0)).toBe(0);
});
