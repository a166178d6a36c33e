// Posts the metrics of this process to a collector at an interval. The metrics are the same as for Prometheus.
import type { Log } from "../base/log.ts";
import { ExportFault } from "./exporter.ts";
import { attributesOf, type OtlpResource, type OtlpTarget, postOtlp, resourceOf } from "./otlp.ts";

export interface MetricsExportOptions {
  target: OtlpTarget;
  resource: OtlpResource;
  everySeconds: number;
  /** The start time of all counters, in Unix seconds. */
  startedAt: number;
  nowSeconds(): number;
  /** Returns the metrics in Prometheus' text format. */
  read(): Promise<string>;
  log: Log;
}

/** State of the export of metrics. */
export interface MetricsExportState {
  /** Unix seconds of the last accepted metrics; null: none yet. */
  sentAt: number | null;
  /** The error of the last attempt; null: the attempt succeeded. */
  error: string | null;
  failingSince: number | null;
}

const [deadlineMs, farewellMs] = [10_000, 1_000];

export class MetricsExport {
  state: MetricsExportState = { sentAt: null, error: null, failingSince: null };
  readonly #options: MetricsExportOptions;
  readonly #timer: ReturnType<typeof setInterval>;
  #posting: Promise<void> | undefined;

  constructor(options: MetricsExportOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.post(), options.everySeconds * 1_000);
    this.#timer.unref();
  }

  /** Posts the metrics now. Never rejects. */
  post(): Promise<void> {
    this.#posting ??= this.#post().finally(() => {
      this.#posting = undefined;
    });
    return this.#posting;
  }

  /** Posts the last figures, and waits for that only briefly. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.race([this.post(), Bun.sleep(farewellMs)]);
  }

  async #post(): Promise<void> {
    const { target, resource, startedAt, nowSeconds, read, log } = this.#options;
    const now = nowSeconds();
    try {
      const message = metricsMessage(await read(), resource, { startedAt, now });
      await postOtlp(target, message, AbortSignal.timeout(deadlineMs));
      if (this.state.error !== null) log.info("metrics_export_recovered");
      this.state = { sentAt: now, error: null, failingSince: null };
    } catch (error) {
      const detail = error instanceof ExportFault ? error.message : String((error as { name?: unknown }).name);
      // A failed post is not repeated, because the next one has the current values of the same counters.
      if (this.state.error === null) log.warn("metrics_export_failing", { detail });
      this.state = { ...this.state, error: detail, failingSince: this.state.failingSince ?? now };
    }
  }
}

interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

/** Converts metrics in Prometheus' text format to an OTLP message. The metrics keep their names. */
export function metricsMessage(
  text: string,
  resource: OtlpResource,
  { startedAt, now }: { startedAt: number; now: number },
): unknown {
  const times = { startTimeUnixNano: `${startedAt}000000000`, timeUnixNano: `${now}000000000` };
  const metrics = [...familiesIn(text)].map(({ name, help, type, samples }) => {
    const described = { name, description: help };
    const points = () =>
      samples
        .filter(({ value }) => Number.isFinite(value))
        .map(({ labels, value }) => ({ ...times, attributes: attributesOf(labels), asDouble: value }));
    if (type === "histogram") {
      return { ...described, histogram: { aggregationTemporality: 2, dataPoints: histogramPoints(samples, times) } };
    }
    if (type === "counter") {
      return { ...described, sum: { aggregationTemporality: 2, isMonotonic: true, dataPoints: points() } };
    }
    return { ...described, gauge: { dataPoints: points() } };
  });
  const scopeMetrics = [{ scope: { name: "headrace", version: resource.version }, metrics }];
  return { resourceMetrics: [{ resource: resourceOf(resource), scopeMetrics }] };
}

interface Family {
  name: string;
  help: string;
  type: string;
  samples: Sample[];
}

function* familiesIn(text: string): Generator<Family> {
  let help = "";
  let family: Family | undefined;
  for (const line of text.split("\n")) {
    const [, word, name, rest = ""] = /^# (HELP|TYPE) (\S+) ?(.*)$/.exec(line) ?? [];
    if (word === "HELP") help = rest;
    else if (word === "TYPE" && name !== undefined) {
      if (family) yield family;
      family = { name, help, type: rest, samples: [] };
    } else if (line !== "" && !line.startsWith("#")) family?.samples.push(sampleIn(line));
  }
  if (family) yield family;
}

function sampleIn(line: string): Sample {
  const end = line.lastIndexOf(" ");
  const brace = line.indexOf("{");
  const value = Number(line.slice(end + 1).replace("Inf", "Infinity"));
  if (brace < 0) return { name: line.slice(0, end), labels: {}, value };
  const labels: Record<string, string> = {};
  for (const [, name = "", text = ""] of line.slice(brace + 1, end).matchAll(/(\w+)="((?:[^"\\]|\\.)*)",?/gy)) {
    labels[name] = text.replace(/\\(.)/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped));
  }
  return { name: line.slice(0, brace), labels, value };
}

/** Returns a data point for each set of labels. Prometheus' buckets are cumulative, and OTLP's are not. */
function histogramPoints(samples: readonly Sample[], times: object) {
  const byLabels = Map.groupBy(samples, ({ labels: { le: _, ...others } }) => JSON.stringify(others));
  return [...byLabels].map(([labels, some]) => {
    const buckets = some.filter(({ name }) => name.endsWith("_bucket"));
    const ends = buckets.filter(({ labels: { le } }) => le !== "+Inf").map(({ labels: { le } }) => Number(le));
    const figureOf = (suffix: string) => some.find(({ name }) => name.endsWith(suffix))?.value ?? 0;
    return {
      ...times,
      attributes: attributesOf(JSON.parse(labels) as Record<string, string>),
      count: String(figureOf("_count")),
      sum: figureOf("_sum"),
      explicitBounds: ends,
      bucketCounts: buckets.map(({ value }, at) => String(value - (buckets[at - 1]?.value ?? 0))),
    };
  });
}
