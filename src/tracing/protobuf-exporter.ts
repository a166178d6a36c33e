// Posts spans as OTLP over HTTP with protobuf, for receivers that take no JSON.
import { createRequire } from "node:module";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace";

/** The protobuf encoder, a dependency of the JSON exporter, so that its version fits the spans. */
const { ProtobufTraceSerializer } = createRequire(import.meta.resolve("@opentelemetry/exporter-trace-otlp-http"))(
  "@opentelemetry/otlp-transformer",
) as typeof import("@opentelemetry/otlp-transformer");

export interface ProtobufExporterOptions {
  url: string;
  headers: Readonly<Record<string, string>>;
  deadlineMs: number;
}

export class ProtobufExporter implements SpanExporter {
  readonly #options: ProtobufExporterOptions;

  constructor(options: ProtobufExporterOptions) {
    this.#options = options;
  }

  export(spans: ReadableSpan[], done: Parameters<SpanExporter["export"]>[1]): void {
    this.#post(ProtobufTraceSerializer.serializeRequest(spans) ?? new Uint8Array()).then(
      () => done({ code: 0 }),
      (error) => done({ code: 1, error: error instanceof Error ? error : new Error(String(error)) }),
    );
  }

  async shutdown(): Promise<void> {}

  async #post(body: Uint8Array): Promise<void> {
    const { url, headers, deadlineMs } = this.#options;
    const response = await fetch(url, {
      method: "POST",
      headers: { ...headers, "content-type": "application/x-protobuf" },
      body: new Uint8Array(body),
      redirect: "manual",
      signal: AbortSignal.timeout(deadlineMs),
    });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
  }
}
