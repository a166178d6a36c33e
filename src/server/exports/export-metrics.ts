// The metrics of the export of audit events and requests.
import { exportedKinds } from "../../domain/exports.ts";
import type { SinkFigures } from "../../exports/exporter.ts";
import { type Exposition, labelText } from "../../metrics/exposition.ts";

/** Writes the metrics. Without receivers, writes only the metric families, without samples. */
export function writeExports(out: Exposition, sinks: readonly SinkFigures[]): void {
  out.family("headrace_export_records_total", "counter", "Records that this process sent and the receiver accepted.");
  for (const { name: sink, sent } of sinks) {
    for (const kind of exportedKinds) out.sample(labelText({ sink, kind }), sent[kind]);
  }
  out.family(
    "headrace_export_records_lost_total",
    "counter",
    "Records that the receiver refused for good, or that retention deleted before they were sent.",
  );
  for (const { name: sink, rejected, missing } of sinks) {
    out.sample(labelText({ sink, reason: "rejected" }), rejected);
    out.sample(labelText({ sink, reason: "deleted" }), missing);
  }
  out.family("headrace_export_failures_total", "counter", "Failed attempts of this process. They are repeated.");
  for (const { name: sink, failedAttempts } of sinks) out.sample(labelText({ sink }), failedAttempts);
  const states = sinks.flatMap(({ name: sink, state }) => (state ? [{ labels: labelText({ sink }), state }] : []));
  out.family("headrace_export_waiting_records", "gauge", "Records of all replicas that the receiver lacks.");
  for (const { labels, state } of states) out.sample(labels, state.waiting);
  out.family("headrace_export_lag_seconds", "gauge", "Seconds for which the oldest of these records has waited.");
  for (const { labels, state } of states) out.sample(labels, state.lagSeconds);
  out.family("headrace_export_failing", "gauge", "1 if the last attempt at the receiver failed.");
  for (const { labels, state } of states) out.sample(labels, Number(state.failingSince !== null));
}
