// Composes tracing from the OpenTelemetry SDK. Loaded only if traces are configured, and not registered globally.
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { AlwaysOnSampler, type SpanExporter, TracerProvider } from "@opentelemetry/sdk-trace";
import type { Log } from "../base/log.ts";
import type { Tracer } from "../domain/usage/trace.ts";
import { defaultBounds, type ExportBounds, SpanExport } from "./export.ts";
import { ProtobufExporter } from "./protobuf-exporter.ts";
import { SamplingTracer } from "./tracer.ts";

export interface TracingOptions {
  /** The URL to which spans are posted. */
  url: string;
  headers: Readonly<Record<string, string>>;
  protocol: "http/json" | "http/protobuf";
  serviceName: string;
  version: string;
  /** The id of this process, which differs between the processes of an installation. */
  instanceId: string;
  sample: number;
  content: boolean;
  log: Log;
  /** Limits that replace the defaults. */
  bounds?: Partial<ExportBounds> | undefined;
}

export interface Tracing {
  tracer: Tracer;
  /** Sends the remaining spans, within the bounds. */
  close(): Promise<void>;
}

/** Limits of the SDK, as a second safeguard: the code that sets attributes and events already limits them. */
const spanLimits = { attributeCountLimit: 64, attributeValueLengthLimit: 32_768, eventCountLimit: 16 };

export function openTracing(options: TracingOptions): Tracing {
  const { serviceName, version, instanceId, sample, content, log } = options;
  const bounds = { ...defaultBounds, ...options.bounds };
  const spans = new SpanExport(exporterOf(options, bounds), log, bounds);
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      "service.name": serviceName,
      "service.version": version,
      "service.instance.id": instanceId,
    }),
    // Samples every span, because `SamplingTracer` has decided before the span begins.
    sampler: new AlwaysOnSampler(),
    spanProcessors: [spans],
    spanLimits,
  });
  const tracer = new SamplingTracer({ tracer: provider.getTracer("headrace", version), sample, content });
  return { tracer, close: () => spans.shutdown() };
}

function exporterOf({ url, headers: given, protocol }: TracingOptions, { deadlineMs }: ExportBounds): SpanExporter {
  const headers = { ...given };
  if (protocol === "http/protobuf") return new ProtobufExporter({ url, headers, deadlineMs });
  return new OTLPTraceExporter({ url, headers, timeoutMillis: deadlineMs, concurrencyLimit: 2 });
}
