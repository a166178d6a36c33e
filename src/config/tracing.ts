// The settings for sending traces to a collector, from the file and from OpenTelemetry's standard variables.
import { trimSlashes } from "../base/text/http-url.ts";
import type { FileData } from "./file-schema.ts";
import { parseHeaderList } from "./formats.ts";
import { options } from "./options.ts";
import type { OptionReader } from "./sources.ts";

export interface TracingConfig {
  /** The complete URL to which spans are posted. */
  readonly url: string;
  /** HTTP headers to send, with names in lower case. The values are secrets. */
  readonly headers: Readonly<Record<string, string>>;
  readonly protocol: "http/json" | "http/protobuf";
  readonly serviceName: string;
  /** The share of requests to trace, from 0 to 1, if the client did not send a trace. */
  readonly sample: number;
  /** True if traces include prompts and answers. */
  readonly content: boolean;
}

const tracesPath = "/v1/traces";
/** The port for OTLP over gRPC. */
const grpcPort = "4317";

/** Reads the tracing settings. `config` is undefined if tracing is off. Problems are added to `reader`. */
export function readTracing(
  reader: OptionReader,
  file: FileData["tracing"],
): { config: TracingConfig | undefined; warnings: readonly string[] } {
  const whole = reader.take(options.otlpTracesEndpoint).value;
  const base = reader.take(options.otlpEndpoint).value;
  const headers = reader.take(options.otlpHeaders).value;
  const serviceName = reader.take(options.otelServiceName).value;
  if (reader.take(options.otelDisabled).value) return { config: undefined, warnings: [] };
  const url = whole ?? (base === undefined ? undefined : withPath(base));
  if (url === undefined) {
    return { config: undefined, warnings: file ? ["tracing: has no endpoint, so nothing is traced"] : [] };
  }
  const config: TracingConfig = {
    url,
    headers: { ...lowerCased(file?.headers ?? {}), ...parseHeaderList(headers ?? "") },
    protocol: file?.protocol ?? "http/json",
    serviceName,
    sample: file?.sample ?? 1,
    content: file?.content ?? false,
  };
  const port = URL.canParse(url) ? new URL(url).port : "";
  const warnings =
    port === grpcPort
      ? ["tracing: port 4317 is mostly for gRPC; OTLP over HTTP, which is sent, mostly goes to port 4318"]
      : [];
  return { config, warnings };
}

function withPath(base: string): string {
  const trimmed = trimSlashes(base);
  return trimmed.endsWith(tracesPath) ? trimmed : trimmed + tracesPath;
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
