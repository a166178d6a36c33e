// Sends spans to the collector in the background: in batches, one at a time, with a limited number of waiting spans.

import type { ReadableSpan, SpanExporter, SpanProcessor } from "@opentelemetry/sdk-trace";
import { exactMs } from "../base/clock.ts";
import type { Log } from "../base/log.ts";

export interface ExportBounds {
  /** Maximum number of waiting spans. Further spans are dropped. */
  maxWaiting: number;
  /** Maximum spans of a batch. It is small, because serializing a batch delays all requests. */
  batchSize: number;
  /** Milliseconds for which a span waits until a batch is sent. */
  delayMs: number;
  /** Milliseconds that the collector has for one batch. */
  deadlineMs: number;
  /** Milliseconds for sending the remaining spans when the server stops. */
  farewellMs: number;
  /** Milliseconds between two reports of dropped spans. */
  reportEveryMs: number;
}

export const defaultBounds: ExportBounds = {
  maxWaiting: 4_096,
  batchSize: 128,
  delayMs: 1_000,
  deadlineMs: 10_000,
  farewellMs: 2_000,
  reportEveryMs: 60_000,
};

type ExportResult = Parameters<Parameters<SpanExporter["export"]>[1]>[0];

const [succeeded, failed] = [0, 1];
const maxReasonLength = 200;

export class SpanExport implements SpanProcessor {
  readonly #exporter: SpanExporter;
  readonly #log: Log;
  readonly #bounds: ExportBounds;
  #waiting: ReadableSpan[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sending: Promise<void> | undefined;
  /** Spans in the batch that is being sent. */
  #underWay = 0;
  #dropped = 0;
  #unreported = 0;
  #reason = "";
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(exporter: SpanExporter, log: Log, bounds: ExportBounds = defaultBounds) {
    this.#exporter = exporter;
    this.#log = log;
    this.#bounds = bounds;
  }

  /** The number of spans that were never delivered. */
  get dropped(): number {
    return this.#dropped;
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    const { maxWaiting, batchSize, delayMs } = this.#bounds;
    if (this.#closed || this.#waiting.length >= maxWaiting) {
      this.#drop(1, this.#closed ? "the server is being stopped" : "too many are waiting");
      return;
    }
    this.#waiting.push(span);
    if (this.#sending) return;
    if (this.#waiting.length >= batchSize) this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), delayMs).unref();
  }

  async forceFlush(): Promise<void> {
    while (this.#sending || this.#waiting.length > 0) {
      if (!this.#sending) this.#send();
      await this.#sending;
    }
  }

  /** Sends waiting spans, for a limited time. */
  async shutdown(): Promise<void> {
    this.#closed = true;
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, this.#bounds.farewellMs);
    await Promise.race([this.forceFlush(), over]);
    clearTimeout(timer);
    clearTimeout(this.#timer);
    const unsent = this.#waiting.splice(0).length + this.#underWay;
    this.#underWay = 0;
    if (unsent > 0) this.#drop(unsent, "the collector took too long at the end");
    this.#report(true);
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#waiting.splice(0, this.#bounds.batchSize);
    if (batch.length === 0) return;
    this.#underWay = batch.length;
    this.#sending = this.#deliver(batch).then((fault) => {
      this.#sending = undefined;
      if (fault !== undefined) this.#drop(this.#underWay, fault);
      this.#underWay = 0;
      if (this.#waiting.length >= this.#bounds.batchSize) this.#send();
      else if (this.#waiting.length > 0 && !this.#closed) this.#timer = this.#later();
    });
  }

  #later(): ReturnType<typeof setTimeout> {
    return setTimeout(() => this.#send(), this.#bounds.delayMs).unref();
  }

  /** Resolves to the fault, if any. Never rejects, and never takes longer than the deadline. */
  #deliver(batch: ReadableSpan[]): Promise<string | undefined> {
    return new Promise((resolve) => {
      const { deadlineMs } = this.#bounds;
      const timer = setTimeout(() => resolve(`no answer within ${deadlineMs / 1000} s`), deadlineMs);
      const done = ({ code, error }: ExportResult) => {
        clearTimeout(timer);
        resolve(code === succeeded ? undefined : (error?.message ?? "refused"));
      };
      try {
        this.#exporter.export(batch, done);
      } catch (error) {
        done({ code: failed, error: error instanceof Error ? error : new Error(String(error)) });
      }
    });
  }

  #drop(count: number, reason: string): void {
    if (count === 0) return;
    this.#dropped += count;
    this.#unreported += count;
    this.#reason = reason.slice(0, maxReasonLength);
    this.#report(false);
  }

  #report(atOnce: boolean): void {
    const now = exactMs();
    if (this.#unreported === 0 || (!atOnce && now - this.#reportedAtMs < this.#bounds.reportEveryMs)) return;
    this.#reportedAtMs = now;
    this.#log.warn("spans_dropped", { spans: this.#unreported, detail: this.#reason });
    this.#unreported = 0;
  }
}
