// Counts HTTP requests by route, method and status, and measures their duration.
import type { HttpEnd } from "../domain/usage/observer.ts";
import { type Exposition, labelText } from "./exposition.ts";
import { Buckets, Histogram } from "./histogram.ts";

/** Other methods are counted together, because clients may send any method. */
const knownMethods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
const exchangeTimes = new Buckets([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120]);

/** The counts for one route and method. */
interface ExchangeSeries {
  route: string;
  method: string;
  statuses: Map<number, { labels: string; count: number }>;
  durations: Histogram;
}

export class Exchanges {
  /** Series by route, then by method. */
  readonly #series = new Map<string, Map<string, ExchangeSeries>>();

  ended({ method, route = "none", status, durationMs }: HttpEnd): void {
    const known = knownMethods.has(method) ? method : "other";
    const series = this.#series.get(route)?.get(known) ?? this.#add(route, known);
    let counter = series.statuses.get(status);
    if (!counter) {
      counter = { labels: labelText({ route, method: known, status: String(status) }), count: 0 };
      series.statuses.set(status, counter);
    }
    counter.count++;
    series.durations.observe(durationMs);
  }

  /** Number of exchanges that ended so far. */
  get count(): number {
    let count = 0;
    for (const methods of this.#series.values())
      for (const { statuses } of methods.values()) for (const status of statuses.values()) count += status.count;
    return count;
  }

  write(out: Exposition): void {
    const all = [...this.#series.values()].flatMap((methods) => [...methods.values()]);
    out.family("headrace_http_requests_total", "counter", "HTTP requests, by route, method and status.");
    for (const { statuses } of all) for (const { labels, count } of statuses.values()) out.sample(labels, count);
    const name = "headrace_http_request_duration_seconds";
    out.family(name, "histogram", "From the head of a request to the end of its answer, streams included.");
    for (const { route, method, durations } of all) out.lines(durations.lines(name, labelText({ route, method })));
  }

  #add(route: string, method: string): ExchangeSeries {
    const series = { route, method, statuses: new Map(), durations: new Histogram(exchangeTimes) };
    const methods = this.#series.get(route) ?? new Map<string, ExchangeSeries>();
    this.#series.set(route, methods.set(method, series));
    return series;
  }
}
