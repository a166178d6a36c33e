// Metrics of overflows: how many requests went where, and why, and what they have cost in this span.
import { usdOf } from "../base/money.ts";
import type { Overflow } from "../inference/overflow/overflow.ts";
import { type Exposition, labelText } from "../metrics/exposition.ts";

export function writeOverflow(out: Exposition, { counts, spending }: Overflow): void {
  const requests = "headrace_overflow_requests_total";
  out.family(requests, "counter", "Requests that went to a server that others of their model come before.");
  for (const { labels, count } of counts) out.sample(labelText({ ...labels }), count);
  out.family("headrace_overflow_spend_usd", "gauge", "Spent by overflows in the span that is now, as last known here.");
  for (const { model, spentNanoUsd } of spending.figures()) out.sample(labelText({ model }), usdOf(spentNanoUsd));
}
