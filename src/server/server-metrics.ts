// The metrics for Prometheus: traffic and the current state of the server's parts. No store is read.

import { bufferBounds, bufferedBytes, bufferKinds } from "../base/bytes/buffered-bytes.ts";
import type { Clock } from "../base/clock.ts";
import { usdOf } from "../base/money.ts";
import { type BatchFigures, lineEnds } from "../batches/batch-runner.ts";
import type { Observer } from "../domain/usage/observer.ts";
import type { Commands } from "../engines/commands/commands.ts";
import type { MemoryBudget } from "../engines/memory/budget.ts";
import type { SinkFigures } from "../exports/exporter.ts";
import type { Readiness } from "../http/api/service-routes.ts";
import type { Http1Server } from "../http1/server/server.ts";
import type { Catalog } from "../inference/models/catalog.ts";
import type { UpstreamHealths } from "../inference/models/upstream-health.ts";
import type { KnownUpstream } from "../inference/models/upstream-view.ts";
import type { Overflow } from "../inference/overflow/overflow.ts";
import type { Capacity } from "../inference/routing/capacity.ts";
import type { Router } from "../inference/routing/route.ts";
import type { ShadowCount } from "../inference/shadow/shadows.ts";
import type { SpoolLedger } from "../ledger/ledger.ts";
import { contentTypes, Exposition, type ExpositionFormat, formatFor, labelText } from "../metrics/exposition.ts";
import { Buckets, Histogram } from "../metrics/histogram.ts";
import { readProcess, writeProcess } from "../metrics/process-figures.ts";
import { summed } from "../metrics/summed.ts";
import { ToolTraffic } from "../metrics/tool-traffic.ts";
import { Traffic } from "../metrics/traffic.ts";
import type { SpoolSpace } from "../multipart/spool-space.ts";
import type { NodeDirectory } from "../nodes/node-directory.ts";
import { attemptEnds, type DeliveryFigures, deliveryWays } from "../notifications/delivery/deliverer.ts";
import type { Notifications } from "../notifications/notifications.ts";
import type { Replicas } from "../policy/records/replicas.ts";
import type { EngineSources } from "./engine-sources.ts";
import { writeExports } from "./exports/export-metrics.ts";
import type { Governance } from "./governance.ts";
import { writeModelProcesses } from "./model-process-metrics.ts";
import type { People } from "./people.ts";

export interface ServerMetricsOptions {
  version: string;
  mode: string;
  database: "sqlite" | "postgres";
  /** Unix seconds. */
  startedAt: number;
  clock: Clock;
  governance: Pick<
    Governance,
    "ledger" | "authenticator" | "chatWriter" | "refusals" | "refusalCounts" | "refusedRequests"
  >;
  failedSignIns: People["failures"];
  catalog: Catalog;
  router: Router;
  capacity: Capacity;
  overflow: Overflow;
  sources: Pick<EngineSources, "known" | "former">;
  healths: Pick<UpstreamHealths, "failing">;
  commands: Pick<Commands, "engines">;
  budget: Pick<MemoryBudget, "view">;
  nodes: NodeDirectory;
  replicas: Pick<Replicas, "live">;
  /** Returns the readiness without new checks. */
  readiness(): Readiness;
  /** Returns the states of the secrets that the configuration refers to. */
  secrets(): readonly { name: string; ageSeconds: number }[];
  http(): Pick<Http1Server, "pendingRequests" | "connections">;
  /** Returns the metrics of the workers as texts. Undefined without workers. */
  ofWorkers?: (() => Promise<readonly string[]>) | undefined;
  formSpace: Pick<SpoolSpace, "reservedBytes" | "maxBytes">;
  exports(): readonly SinkFigures[];
  batches(): BatchFigures;
  shadows(): Iterable<ShadowCount>;
  /** Writes the metrics of features. */
  features(out: Exposition): void;
  notices(): { notifications: Notifications["figures"]; deliveries: DeliveryFigures };
}

const loopDelays = new Buckets([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]);
/** Maximum upstreams, nodes, and models of one upstream that have gauges of their own. */
const maxShown = 200;
/** An upstream that accepted a request within this time is up, even if it was too busy to list its models. */
const tookLatelyMs = 60_000;

export class ServerMetrics {
  readonly #options: ServerMetricsOptions;
  readonly #traffic: Traffic;
  /** Counts calls of MCP servers. */
  readonly tools = new ToolTraffic();
  readonly #loopDelay = new Histogram(loopDelays);

  constructor(options: ServerMetricsOptions) {
    this.#options = options;
    const { catalog, sources, clock } = options;
    this.#traffic = new Traffic({
      hasModel: (id) => catalog.get(id) !== undefined,
      hasUpstream: (name) => sources.known().some((known) => known.name === name),
      nowMs: () => clock.monotonicMs(),
    });
  }

  get observer(): Observer {
    return this.#traffic;
  }

  /** Records that the upstream accepted a worker's request. The worker counts the request itself. */
  tookRequest(upstream: string): void {
    this.#traffic.took(upstream);
  }

  /** The number of HTTP requests that have ended. */
  get httpRequests(): number {
    return this.#traffic.httpRequests;
  }

  loopDelayed(ms: number): void {
    this.#loopDelay.observe(ms);
  }

  /** Returns the metrics as text; `accept` is the client's header. */
  async read(accept: string): Promise<{ contentType: string; text: string }> {
    const format = formatFor(accept);
    const [text, workers = []] = await Promise.all([this.#text(format), this.#options.ofWorkers?.()]);
    return { contentType: contentTypes[format], text: summed(text, workers) };
  }

  async #text(format: ExpositionFormat): Promise<string> {
    const process = await readProcess();
    const out = new Exposition(format);
    const { version, mode, database, capacity, startedAt } = this.#options;
    out.family("headrace_build_info", "gauge", "Always 1. The labels name the version, mode and database.");
    out.sample(labelText({ version, mode, database }), 1);
    this.#traffic.write(out, capacity.waitingByModel);
    this.tools.write(out);
    this.#writeServer(out);
    this.#writeUpstreams(out);
    writeOverflow(out, this.#options.overflow);
    writeModelProcesses(out, this.#options.commands.engines, this.#options.budget);
    this.#writeStores(out);
    this.#writeNotifications(out);
    writeBatches(out, this.#options.batches());
    writeExports(out, this.#options.exports());
    writeShadows(out, this.#options.shadows());
    this.#options.features(out);
    const delay = "headrace_event_loop_delay_seconds";
    out.family(delay, "histogram", "Event-loop delay, measured ten times a second. Nothing is answered meanwhile.");
    out.lines(this.#loopDelay.lines(delay, ""));
    writeProcess(out, startedAt, process);
    return out.end();
  }

  #writeServer(out: Exposition): void {
    const { readiness, http, catalog, replicas } = this.#options;
    const { status, checks } = readiness();
    out.gauge(
      "headrace_ready",
      "1 if the server accepts requests, as in `GET /readyz`.",
      Number(status !== "not_ready"),
    );
    out.gauge(
      "headrace_degraded",
      "1 if the server accepts requests, but a check fails.",
      Number(status === "degraded"),
    );
    out.family("headrace_check", "gauge", "1 if a check of `GET /readyz` is ok.");
    for (const [check, state] of Object.entries(checks)) out.sample(labelText({ check }), Number(state === "ok"));
    out.family(
      "headrace_secret_age_seconds",
      "gauge",
      "Seconds since a secret in a file or in Vault was last confirmed.",
    );
    for (const { name, ageSeconds } of this.#options.secrets()) out.sample(labelText({ secret: name }), ageSeconds);
    writeHttp(out, http());
    writeBufferedBytes(out);
    const { reservedBytes: formBytes, maxBytes } = this.#options.formSpace;
    out.gauge("headrace_form_spool_bytes", "Disk space reserved for forms of open requests.", formBytes);
    out.gauge(
      "headrace_form_spool_bytes_limit",
      "Limit of `headrace_form_spool_bytes`. Requests beyond it are refused.",
      maxBytes,
    );
    out.gauge("headrace_catalog_models", "Models in the catalog.", catalog.list().length);
    out.gauge("headrace_replicas", "Processes that share the database, including this one.", replicas.live().length);
  }

  #writeUpstreams(out: Exposition): void {
    const { sources, router, nodes, healths } = this.#options;
    const known = sources.known().slice(0, maxShown);
    const each = (name: string, help: string, value: (upstream: KnownUpstream) => number | undefined) => {
      out.family(name, "gauge", help);
      for (const upstream of known) {
        const { name, source } = upstream;
        const now = value(upstream);
        if (now !== undefined) out.sample(labelText({ upstream: name, source }), now);
      }
    };
    each("headrace_upstream_up", "1 if the upstream answers and does not rest after a failure.", (one) =>
      Number(this.#isUp(one)),
    );
    each(
      "headrace_upstream_resting",
      "1 if the upstream rests after a failure, so that others are tried first.",
      ({ engine }) => Number(router.rests(engine)),
    );
    each(
      "headrace_upstream_draining",
      "1 if the upstream is drained: it finishes its requests and gets no new ones.",
      ({ name }) => Number(router.drained.has(name)),
    );
    out.family(
      "headrace_upstream_failing",
      "gauge",
      "1 if the last attempts of real requests failed. `model` is empty if no single model is at fault.",
    );
    for (const { upstream, models } of healths.failing().slice(0, maxShown)) {
      for (const { model, health } of models)
        out.sample(labelText({ upstream, model: model ?? "", cause: health.last?.cause ?? "" }), 1);
    }
    this.#writeLoads(out, known);
    writeSlots(out, known, this.#options.capacity);
    out.family("headrace_node_connected", "gauge", "1 if a node is connected to this or another replica.");
    for (const { id, name } of nodes.records().slice(0, maxShown)) {
      out.sample(labelText({ node: name }), Number(nodes.locate(id) !== undefined));
    }
  }

  /** Writes the load that upstreams report, which includes requests of other clients. */
  #writeLoads(out: Exposition, known: readonly KnownUpstream[]): void {
    const { router } = this.#options;
    const said = known.flatMap(({ name, engine }) => {
      const load = router.loadOf(engine);
      return load ? [{ labels: labelText({ upstream: name }), load }] : [];
    });
    const loads = [
      ["headrace_upstream_reported_running", "Running requests of all clients, as the upstream reports.", "running"],
      ["headrace_upstream_reported_waiting", "Requests in the upstream's own queue, as it reports.", "waiting"],
      ["headrace_upstream_cache_use_ratio", "Share of the prompt cache in use, as the upstream reports.", "cacheUse"],
    ] as const;
    for (const [name, help, member] of loads) {
      out.family(name, "gauge", help);
      for (const { labels, load } of said) {
        const value = load[member];
        if (value !== null) out.sample(labels, value);
      }
    }
  }

  #isUp({ name, engine }: KnownUpstream): boolean {
    const { router, catalog, clock } = this.#options;
    if (router.engineState(engine) !== "ok") return false;
    const { models, error } = catalog.status(engine);
    if (error === undefined) return models !== undefined;
    const tookMs = this.#traffic.tookMs(name);
    // An upstream may serve models although it has never listed them.
    return tookMs > (models === undefined ? Number.NEGATIVE_INFINITY : clock.monotonicMs() - tookLatelyMs);
  }

  #writeStores(out: Exposition): void {
    const { governance, failedSignIns, nodes } = this.#options;
    const { ledger, authenticator, chatWriter, refusals, refusalCounts, refusedRequests } = governance;
    writeLedger(out, ledger);
    const credentials = authenticator.figures;
    out.gauge("headrace_credentials_cached", "Keys and tokens in the credential cache.", credentials.cached);
    const unconfirmed = "headrace_credentials_unconfirmed_seconds";
    out.gauge(
      unconfirmed,
      "Seconds since the database last confirmed the cached credentials.",
      credentials.unconfirmedMs / 1000,
    );
    const chats = chatWriter.figures;
    out.gauge("headrace_chats_pending", "Chats that wait to be stored.", chats.pending);
    out.gauge("headrace_chats_pending_bytes", "Approximate size of the chats that wait to be stored.", chats.bytes);
    out.counter("headrace_chats_dropped_total", "Chats that could not be stored.", chats.dropped);
    const audits = [refusals.figures, failedSignIns.figures, nodes.auditFigures];
    const sum = (member: "pending" | "lost") => audits.reduce((total, figures) => total + figures[member], 0);
    out.gauge(
      "headrace_audit_pending",
      "Refusals and node connections that wait to be written to the audit log.",
      sum("pending"),
    );
    out.counter(
      "headrace_audit_lost_total",
      "Audit rows that were dropped because the database was unavailable.",
      sum("lost"),
    );
    out.gauge("headrace_refusal_counts_pending", "Refusal counts that wait for the database.", refusalCounts.pending);
    const refused = refusedRequests.figures;
    out.gauge("headrace_refused_requests_pending", "Refused requests that wait for the database.", refused.pending);
    const leftOut = "headrace_refused_requests_not_listed_total";
    out.family(
      leftOut,
      "counter",
      "Refused requests that are not listed: beyond the bound of a key or of all keys, or lost.",
    );
    out.sample(labelText({ reason: "bound" }), refused.leftOut);
    out.sample(labelText({ reason: "lost" }), refused.lost);
  }

  #writeNotifications(out: Exposition): void {
    const { notifications, deliveries } = this.#options.notices();
    out.counter(
      "headrace_notices_total",
      "Events for which notifications are sent to accounts or operators.",
      notifications.stored,
    );
    const notKept = "headrace_notices_write_failures_total";
    out.counter(
      notKept,
      "Notifications that could not be written to the database. They are retried.",
      notifications.failures,
    );
    const { waiting, overdueSeconds, underWay, attempts } = deliveries;
    const waits = "headrace_notice_deliveries_waiting";
    out.gauge(waits, "Deliveries that wait in the database, including retries. 10000 means 10000 or more.", waiting);
    const overdue = "headrace_notice_deliveries_overdue_seconds";
    out.gauge(overdue, "Seconds since the oldest waiting delivery was due.", overdueSeconds);
    out.gauge("headrace_notice_deliveries_under_way", "Delivery attempts in progress in this process.", underWay);
    const ended = "headrace_notice_attempts_total";
    out.family(
      ended,
      "counter",
      "Delivery attempts of this process. `again`: will be retried. `failed`: the last attempt failed.",
    );
    for (const way of deliveryWays) {
      for (const result of attemptEnds) out.sample(labelText({ way, result }), attempts[way][result]);
    }
  }
}

function writeBatches(out: Exposition, { open, running, ended }: BatchFigures): void {
  out.gauge("headrace_batches_open", "Batches of all replicas with work left.", open);
  out.gauge("headrace_batch_lines_running", "Batch lines in progress in this process.", running);
  const attempts = "headrace_batch_line_attempts_total";
  out.family(attempts, "counter", "Attempts at batch lines. `gave_way`: to a live request. `again`: will be retried.");
  for (const result of lineEnds) out.sample(labelText({ result }), ended[result]);
}

function writeShadows(out: Exposition, counts: Iterable<ShadowCount>): void {
  const name = "headrace_shadow_requests_total";
  out.family(name, "counter", "Requests of a model that were to be copied to its shadow, by result.");
  for (const { model, shadow, result, count } of counts) out.sample(labelText({ model, shadow, result }), count);
}

export function writeHttp(
  out: Exposition,
  { pendingRequests, connections }: ReturnType<ServerMetricsOptions["http"]>,
): void {
  out.gauge("headrace_http_requests_in_flight", "Requests whose answer is not complete.", pendingRequests);
  out.gauge("headrace_connections_open", "Open client connections.", connections.open);
  out.gauge(
    "headrace_connections_limit",
    "Maximum number of client connections. Further ones are refused.",
    connections.limit,
  );
}

export function writeLedger(out: Exposition, { figures }: Pick<SpoolLedger, "figures">): void {
  const { open, spoolBytes, pending, databaseFailures, spoolFailures } = figures;
  out.gauge("headrace_ledger_open_requests", "Requests in the ledger that have not ended.", open);
  out.gauge("headrace_ledger_pending_records", "Ended requests that are not in the database yet.", pending);
  out.gauge("headrace_ledger_spool_bytes", "Size of the files in the ledger's spool.", spoolBytes);
  const drain = "headrace_ledger_write_failures_total";
  out.family(drain, "counter", "Failed writes of the ledger to the `database`, which are retried, or to the `spool`.");
  out.sample(labelText({ store: "database" }), databaseFailures);
  out.sample(labelText({ store: "spool" }), spoolFailures);
}

/** Writes the metrics of buffered bytes. */
export function writeBufferedBytes(out: Exposition): void {
  out.family("headrace_held_bytes", "gauge", "Bytes of requests and answers in memory, by kind.");
  for (const kind of bufferKinds) out.sample(labelText({ kind }), bufferedBytes.byKind[kind]);
  const memoryAccounts = "Keys that have bytes in memory. Visitors count as one, and so do other replicas.";
  out.gauge("headrace_held_bytes_holders", memoryAccounts, bufferedBytes.memoryAccounts);
  out.gauge(
    "headrace_held_bytes_limit",
    "Limit of `headrace_held_bytes` over all kinds. More is refused.",
    bufferedBytes.maxBytes,
  );
  const refused = "headrace_held_bytes_refused_total";
  out.family(refused, "counter", "Refused reservations of memory, by the bound that was reached.");
  for (const bound of bufferBounds) out.sample(labelText({ bound }), bufferedBytes.refused[bound]);
}

export function writeSlots(
  out: Exposition,
  known: readonly Pick<KnownUpstream, "name" | "engine">[],
  capacity: Pick<Capacity, "figures" | "waitingByPriority">,
): void {
  const gates = known.flatMap(({ name: upstream, engine }) =>
    capacity
      .figures(engine)
      .slice(0, maxShown)
      .map(({ model, ...figures }) => ({ upstream, model: model ?? "", ...figures })),
  );
  const slots = [
    [
      "headrace_upstream_places",
      "Slots: maximum number of concurrent requests. `model` is set if each model has its own.",
      "limit",
    ],
    [
      "headrace_upstream_places_in_use",
      "Slots in use. A request that needs several slots counts as several.",
      "inFlight",
    ],
    ["headrace_upstream_waiting", "Requests that wait for a slot at this upstream or at another one.", "waiting"],
  ] as const;
  for (const [name, help, member] of slots) {
    out.family(name, "gauge", help);
    // A model may have separate slots for embeddings, so slots are summed by upstream and model.
    const sums = new Map<string, number>();
    for (const gate of gates) {
      const labels = labelText({ upstream: gate.upstream, model: gate.model });
      sums.set(labels, (sums.get(labels) ?? 0) + gate[member]);
    }
    for (const [labels, sum] of sums) out.sample(labels, sum);
  }
  out.family("headrace_requests_waiting_by_priority", "gauge", "Requests that wait for a slot, each counted once.");
  for (const [priority, count] of Object.entries(capacity.waitingByPriority)) {
    out.sample(labelText({ priority }), count);
  }
}

function writeOverflow(out: Exposition, { counts, spending }: Overflow): void {
  const requests = "headrace_overflow_requests_total";
  out.family(requests, "counter", "Requests that were sent to an overflow deployment.");
  for (const { labels, count } of counts) out.sample(labelText({ ...labels }), count);
  out.family(
    "headrace_overflow_spend_usd",
    "gauge",
    "Cost of a model's overflow in the current span, as last known to this process.",
  );
  for (const { model, spentNanoUsd } of spending.figures()) out.sample(labelText({ model }), usdOf(spentNanoUsd));
}
