// Puts tracing together from the OpenTelemetry SDK: loaded only where traces are wanted, and registered nowhere.
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { AlwaysOnSampler, TracerProvider } from "@opentelemetry/sdk-trace";
import type { Log } from "../base/log.ts";
import type { Tracer } from "../domain/usage/trace.ts";
import { defaultBounds, type ExportBounds, SpanExport } from "./export.ts";
import { SamplingTracer } from "./tracer.ts";

export interface TracingOptions {
  /** Spans are posted there. */
  url: string;
  headers: Readonly<Record<string, string>>;
  serviceName: string;
  version: string;
  /** Tells one process of an installation from the others. */
  instanceId: string;
  sample: number;
  content: boolean;
  log: Log;
  /** Default: the usual. */
  bounds?: Partial<ExportBounds> | undefined;
}

export interface Tracing {
  tracer: Tracer;
  /** Sends what is left, within the bounds. */
  close(): Promise<void>;
}

/** A backstop: what is set is bounded where it is set. */
const spanLimits = { attributeCountLimit: 64, attributeValueLengthLimit: 32_768, eventCountLimit: 16 };

export function openTracing(options: TracingOptions): Tracing {
  const { url, serviceName, version, instanceId, sample, content, log } = options;
  const bounds = { ...defaultBounds, ...options.bounds };
  const exporter = new OTLPTraceExporter({
    url,
    headers: { ...options.headers },
    timeoutMillis: bounds.deadlineMs,
    concurrencyLimit: 2,
  });
  const spans = new SpanExport(exporter, log, bounds);
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      "service.name": serviceName,
      "service.version": version,
      "service.instance.id": instanceId,
    }),
    // It is decided before a span is begun.
    sampler: new AlwaysOnSampler(),
    spanProcessors: [spans],
    spanLimits,
  });
  const tracer = new SamplingTracer({ tracer: provider.getTracer("headrace", version), sample, content });
  return { tracer, close: () => spans.shutdown() };
}
