// Sends audit events and requests to receivers outside, such as a collector. Each receiver gets the records in order
// and once, by its cursor in the database. If several processes share the database, only the holder of the lease
// exports.
import { Cancellation } from "../base/cancellation.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import {
  type ExportedKind,
  type ExportedRecord,
  type ExportSinkState,
  type ExportStore,
  exportedKinds,
} from "../domain/exports.ts";

/** The error of a failed attempt to export. The message contains no secret and nothing of the records. */
export class ExportFault extends Error {
  override readonly name = "ExportFault";
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterSeconds = 0) {
    super(message);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export interface ExportSink {
  name: string;
  /** Maximum records of a batch. */
  limit: number;
  /** Seconds for which the oldest record waits for a full batch. After that, a smaller batch is sent. */
  waitSeconds: number;
  /**
   * Resolves once the receiver has all records, with the number of records that the receiver refused for good. A
   * repeated call has the same records. Rejects with an `ExportFault` if the batch must be sent again.
   */
  send(records: readonly ExportedRecord[], signal: AbortSignal): Promise<number>;
}

export interface ExporterOptions {
  store: ExportStore;
  sinks: readonly ExportSink[];
  kinds: readonly ExportedKind[];
  /**
   * If audit events have not reached a receiver for this many seconds, changes are refused. Null: changes are never
   * refused.
   */
  maxAuditLag: number | null;
  /** Id of this process. */
  holder: string;
  /** True if no other process may use the database. */
  isAlone: boolean;
  clock: Clock;
  log: Log;
  /** Milliseconds between polls for records. Default: 2,000. */
  everyMs?: number;
  /** Milliseconds after which an attempt has failed. Default: 20,000. */
  deadlineMs?: number;
}

interface SinkWork {
  sink: ExportSink;
  running: Promise<void> | undefined;
  failures: number;
  retryAtMs: number;
  isReported: boolean;
  sent: Record<ExportedKind, number>;
  failedAttempts: number;
  rejected: number;
  missing: number;
}

/** Figures of a receiver: its state in the database, and the counts of this process. */
export type SinkFigures = Pick<SinkWork, "sent" | "failedAttempts" | "rejected" | "missing"> & {
  name: string;
  state: ExportSinkState | undefined;
};

const defaultEveryMs = 2_000;
/** Lease in seconds. The lease is longer than an attempt, so that another process rarely repeats a running attempt. */
const leaseSeconds = 30;
const renewedMs = 10_000;
const defaultDeadlineMs = 20_000;
const [firstPauseMs, maxPauseMs] = [1_000, 60_000];
/** After this many failures in a row, another process may export, because this process alone may lack the network. */
const maxFailures = 5;
/**
 * Milliseconds for which this process does not take the lease again after giving it up. Other processes notice a free
 * lease sooner.
 */
const yieldedMs = 6_000;
/** Milliseconds that a stop waits for attempts under way. */
const graceMs = 1_000;

export class Exporter {
  readonly #options: ExporterOptions;
  readonly #works: readonly SinkWork[];
  readonly #stop = new Cancellation();
  readonly #timer: ReturnType<typeof setInterval>;
  #states: readonly ExportSinkState[] = [];
  #polling: Promise<void> | undefined;
  #isRegistered = false;
  #heldMs = Number.NEGATIVE_INFINITY;
  #yieldedUntilMs = Number.NEGATIVE_INFINITY;
  #isYielding = false;
  #isFailing = false;

  constructor(options: ExporterOptions) {
    this.#options = options;
    this.#works = options.sinks.map((sink) => ({
      ...{ sink, running: undefined, failures: 0, retryAtMs: 0, isReported: false },
      sent: { audit: 0, requests: 0 },
      ...{ failedAttempts: 0, rejected: 0, missing: 0 },
    }));
    this.#timer = setInterval(() => this.poll(), options.everyMs ?? defaultEveryMs);
    this.#timer.unref();
  }

  figures(): SinkFigures[] {
    return this.#works.map(({ sink: { name }, sent, failedAttempts, rejected, missing }) => ({
      ...{ name, sent, failedAttempts, rejected, missing },
      state: this.#states.find((state) => state.name === name),
    }));
  }

  /** Polls for records now. Never rejects. */
  poll(): Promise<void> {
    this.#polling ??= this.#poll().finally(() => {
      this.#polling = undefined;
    });
    return this.#polling;
  }

  /** Waits briefly for attempts under way. Another process repeats those that did not end. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#stop.cancel();
    await Promise.race([
      Promise.all([this.#polling, ...this.#works.map(({ running }) => running)]),
      Bun.sleep(graceMs),
    ]);
    const { store, holder, log } = this.#options;
    await store.release(holder).catch((error) => log.warn("export_lease_not_released", { detail: textOf(error) }));
  }

  async #poll(): Promise<void> {
    const { store, sinks, kinds, maxAuditLag, holder, isAlone, clock, log } = this.#options;
    if (this.#stop.cancelled) return;
    const names = sinks.map(({ name }) => name);
    try {
      // Registers the receivers, because records are queued for a receiver only from its registration on.
      if (!this.#isRegistered) await store.register(names, { kinds, maxAuditLag });
      this.#isRegistered = true;
      const nowMs = clock.monotonicMs();
      // Running attempts end before the lease is released. Otherwise the next holder would send their records again.
      if (this.#isYielding && this.#works.every(({ running }) => !running)) {
        await store.release(holder);
        this.#isYielding = false;
        this.#heldMs = Number.NEGATIVE_INFINITY;
        this.#yieldedUntilMs = nowMs + yieldedMs;
      }
      if (nowMs >= this.#yieldedUntilMs && nowMs - this.#heldMs >= renewedMs) {
        const isHeld = await store.hold(holder, names, { seconds: leaseSeconds, isAlone, maxAuditLag });
        this.#heldMs = isHeld ? nowMs : Number.NEGATIVE_INFINITY;
      }
      this.#states = await store.states();
      if (this.#isFailing) log.info("export_queue_read_again");
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.warn("export_queue_not_read", { detail: textOf(error) });
      this.#isFailing = true;
      return;
    }
    if (this.#heldMs === Number.NEGATIVE_INFINITY || this.#isYielding) return;
    for (const work of this.#works) {
      work.running ??= this.#drain(work).finally(() => {
        work.running = undefined;
      });
    }
  }

  /** Sends batches until the waiting records no longer fill a batch. Never rejects. */
  async #drain(work: SinkWork): Promise<void> {
    const { store, holder, isAlone, clock, log } = this.#options;
    const { sink } = work;
    const state = this.#states.find(({ name }) => name === sink.name);
    if (!state || state.waiting === 0 || clock.monotonicMs() < work.retryAtMs) return;
    if (state.waiting < sink.limit && state.lagSeconds < sink.waitSeconds) return;
    try {
      for (let size = sink.limit; size >= sink.limit && !this.#stop.cancelled && !this.#isYielding; ) {
        const batch = await store.next(holder, sink.name, sink.limit);
        if (!batch) return;
        size = batch.records.length;
        const rejected = await this.#send(sink, batch.records);
        if (!(await store.sent(holder, sink.name, batch.end))) return;
        this.#count(work, batch.records, rejected);
      }
    } catch (error) {
      if (this.#stop.cancelled) return;
      const pauseMs = Math.min(maxPauseMs, firstPauseMs * 2 ** work.failures);
      const askedMs = error instanceof ExportFault ? error.retryAfterSeconds * 1_000 : 0;
      work.failures++;
      work.failedAttempts++;
      if (!isAlone && work.failures % maxFailures === 0) this.#isYielding = true;
      work.retryAtMs = clock.monotonicMs() + Math.max(pauseMs, Math.min(maxPauseMs, askedMs));
      const detail = textOf(error);
      if (!work.isReported) log.warn("export_failing", { sink: sink.name, detail, waiting: state.waiting });
      work.isReported = true;
      await store.failed(holder, sink.name, detail).catch((fault) => {
        log.warn("export_state_not_written", { sink: sink.name, detail: textOf(fault) });
      });
    }
  }

  async #send(sink: ExportSink, records: readonly ExportedRecord[]): Promise<number> {
    const wanted = records.filter(({ kind, record }) => record !== null && this.#options.kinds.includes(kind));
    if (wanted.length === 0) return 0;
    const { deadlineMs = defaultDeadlineMs } = this.#options;
    const late = AbortSignal.timeout(deadlineMs);
    const signal = AbortSignal.any([this.#stop.signal, late]);
    // Do not wait for a receiver that ignores the signal, as Bun's S3 client does. If its attempt ends late, the
    // repeated attempt has the same records.
    const ended = Promise.withResolvers<never>();
    signal.addEventListener("abort", () => ended.reject(signal.reason), { once: true });
    try {
      return await Promise.race([sink.send(wanted, signal), ended.promise]);
    } catch (error) {
      throw late.aborted ? new ExportFault(`no answer within ${deadlineMs / 1000} s`) : error;
    }
  }

  #count(work: SinkWork, records: readonly ExportedRecord[], rejected: number): void {
    const { log } = this.#options;
    const sink = work.sink.name;
    const present = records.filter(({ record }) => record !== null);
    for (const kind of exportedKinds) work.sent[kind] += present.filter((one) => one.kind === kind).length;
    const missing = records.length - present.length;
    work.missing += missing;
    work.rejected += rejected;
    work.failures = 0;
    if (missing > 0) log.warn("export_records_missing", { sink, records: missing });
    if (rejected > 0) log.warn("export_records_rejected", { sink, records: rejected });
    if (work.isReported) log.info("export_recovered", { sink });
    work.isReported = false;
  }
}

function textOf(error: unknown): string {
  if (error instanceof ExportFault) return error.message;
  const { detail, code, name } = (error ?? {}) as { detail?: unknown; code?: unknown; name?: unknown };
  return String(detail ?? code ?? name ?? "unknown");
}
