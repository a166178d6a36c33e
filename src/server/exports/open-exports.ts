// Composes the export of audit events, requests and metrics. The code is loaded only if receivers are configured, or
// were.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { AuditConfig, ExportConfig } from "../../config/config.ts";
import type { ExportedRecord } from "../../domain/exports.ts";
import type { SinkFigures } from "../../exports/exporter.ts";
import type { MetricsExportState } from "../../exports/otlp-metrics.ts";
import { type Database, dialectOf } from "../../storage/sql/database.ts";
import { available } from "../../storage/sql/outage.ts";
import type { Opened } from "../opened.ts";

export interface ExportsOptions {
  config: ExportConfig | undefined;
  audit: AuditConfig;
  db: Database;
  resource: { serviceName: string; version: string; instanceId: string };
  /** Unix seconds. */
  startedAt: number;
  deletionClock: { nowSeconds(): Promise<number> };
  /** Returns the metrics in Prometheus' text format. */
  readMetrics(): Promise<string>;
  clock: Clock;
  log: Log;
  opened: Opened;
}

export interface Exports {
  sinks(): readonly SinkFigures[];
  metrics(): MetricsExportState | undefined;
}

export async function openExports(options: ExportsOptions): Promise<Exports> {
  const { config, db, clock, log, opened } = options;
  const known: { name: string }[] = await available(db`SELECT name FROM export_sinks`);
  if (!config && known.length === 0) return { sinks: () => [], metrics: () => undefined };
  const { SqlExportStore } = await import("../../storage/tables/operations/export-store.ts");
  const { ExpirySweep } = await import("../../storage/tables/expiry-sweep.ts");
  const store = new SqlExportStore(db);
  opened.add(new ExpirySweep({ what: "export", store, deletionClock: options.deletionClock, log }));
  const sinks = config ? await sinksOf(config, options.resource) : [];
  for (const { name } of known) {
    if (sinks.some((sink) => sink.name === name)) continue;
    await store.unrequire(name);
    log.warn("export_sink_unused", {
      sink: name,
      detail: "Records wait for this receiver, which is not configured any more. After a week they are dropped.",
    });
  }
  const { Exporter } = await import("../../exports/exporter.ts");
  const kinds = config?.records ?? [];
  const holder = options.resource.instanceId;
  const isAlone = dialectOf(db) === "sqlite";
  const { required, maxLagSeconds } = options.audit;
  const maxAuditLag = required ? maxLagSeconds : null;
  const exporter =
    sinks.length > 0
      ? opened.add(new Exporter({ store, sinks, kinds, maxAuditLag, holder, isAlone, clock, log }))
      : undefined;
  await exporter?.poll();
  const metrics = config?.otlp?.metrics === true ? await metricsExport(config.otlp, options) : undefined;
  return { sinks: () => exporter?.figures() ?? [], metrics: () => metrics?.state };
}

async function sinksOf({ otlp, s3 }: ExportConfig, resource: ExportsOptions["resource"]) {
  const { otlpLogSink } = await import("../../exports/otlp.ts");
  const { objectSink } = await import("../../exports/object-sink.ts");
  const { S3Objects } = await import("../../storage/objects/s3-objects.ts");
  const lineOf = await recordLines();
  const objects = s3 && new S3Objects(s3);
  return [
    ...(otlp?.logs === true ? [otlpLogSink(targetOf(otlp, "logs"), resource, lineOf)] : []),
    ...(objects && s3
      ? [
          objectSink({
            put: (name, bytes) => objects.put(name, bytes, "application/x-ndjson"),
            ...{ lineOf, waitSeconds: s3.everySeconds },
          }),
        ]
      : []),
  ];
}

/** Returns a function that writes a record as the API shows it to operators: figures, never content. */
async function recordLines(): Promise<(exported: ExportedRecord) => string> {
  const { eventToWire } = await import("../../http/api/people/audit-list.ts");
  const { requestOfAnyToWire } = await import("../../http/api/admin/all-accounts-routes.ts");
  return ({ seq: sequence, kind, record }) => {
    if (!record) return JSON.stringify({ sequence });
    return JSON.stringify({ sequence, ...(kind === "audit" ? eventToWire(record) : requestOfAnyToWire(record)) });
  };
}

type Otlp = NonNullable<ExportConfig["otlp"]>;

function targetOf({ endpoint, headers = {} }: Otlp, signal: "logs" | "metrics") {
  return { url: `${endpoint}/v1/${signal}`, headers };
}

async function metricsExport(otlp: Otlp, options: ExportsOptions) {
  const { MetricsExport } = await import("../../exports/otlp-metrics.ts");
  const { resource, startedAt, readMetrics, clock, log, opened } = options;
  return opened.add(
    new MetricsExport({
      ...{ target: targetOf(otlp, "metrics"), resource, everySeconds: otlp.metricsSeconds, startedAt, log },
      ...{ nowSeconds: () => clock.nowSeconds(), read: readMetrics },
    }),
  );
}
