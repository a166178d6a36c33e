// Counts model requests and their answers. The counters run during requests, so they only add numbers.

import { GatewayError, type RefusalReason, refusalReasons } from "../base/errors.ts";
import { usdOf } from "../base/money.ts";
import type { AttemptCause } from "../domain/usage/attempt-health.ts";
import type { CacheResult } from "../domain/usage/cache-result.ts";
import {
  type ContinuationOutcome,
  continuationOutcomes,
  type HttpEnd,
  type InferenceCourse,
  type Observer,
  type RefusedInference,
} from "../domain/usage/observer.ts";
import { generationOf, type UsageBegin, type UsageEnd } from "../domain/usage/usage.ts";
import { BoundedSeries, otherLabel } from "./bounded-series.ts";
import { Exchanges } from "./exchanges.ts";
import { type Exposition, labelText } from "./exposition.ts";
import { Buckets, Histogram } from "./histogram.ts";

export interface TrafficOptions {
  /** Reports whether the catalog has the model. If not, its series may be dropped. */
  hasModel(id: string): boolean;
  hasUpstream(name: string): boolean;
  /** Returns monotonic milliseconds. */
  nowMs(): number;
}

/** Maximum number of models with separate series. The same maximum applies to upstreams. */
const maxLabels = 200;
/** Maximum number of series of one model. Upstreams beyond this number share a series. */
const maxRequestSeries = 64;
/** Maximum models of one upstream with separate counts of attempts. */
const maxModelsOfUpstream = 50;

const firstTokenTimes = new Buckets([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]);
const tokenTimes = new Buckets([0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1]);
const requestTimes = new Buckets([0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]);
const queueTimes = new Buckets([0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]);

interface RequestLabels {
  operation: string;
  /** Name of the upstream; empty if none answered. */
  upstream: string;
  outcome: string;
  code: string;
  environment: string;
}

interface RequestSeries extends RequestLabels {
  labels: string;
  count: number;
}

interface ModelSeries {
  label: string;
  labels: string;
  requests: RequestSeries[];
  firstToken: Histogram;
  perToken: Histogram;
  duration: Histogram;
  queue: Histogram;
  promptTokens: number;
  completionTokens: number;
  /** Sum of the costs; undefined until a request has a price. */
  nanoUsd: number | undefined;
  retries: number;
  fallbacks: number;
  /** The amount by which fallback models cost more than this model would have. */
  extraNanoUsd: number;
  /** Number of requests by result of the look-up in the response cache; undefined if none was looked up. */
  cache: Map<CacheResult, number> | undefined;
  /** Number of broken streams by outcome of their continuation; undefined if there was none. */
  continuations: Record<ContinuationOutcome, number> | undefined;
}

interface UpstreamSeries {
  label: string;
  /** Time of the last accepted request, in monotonic milliseconds. */
  tookMs: number;
  /** Number of answers whose reported usage was too low. */
  underReported: number;
  /** Counters by model at the upstream, then by result and cause. */
  attempts: Map<string, Map<string, { labels: string; count: number }>>;
}

export class Traffic implements Observer {
  readonly #exchanges = new Exchanges();
  readonly #models: BoundedSeries<ModelSeries>;
  readonly #upstreams: BoundedSeries<UpstreamSeries>;
  readonly #refusals = refusalReasons.map((reason) => ({ reason, labels: labelText({ reason }), count: 0 }));
  readonly #nowMs: () => number;
  /** Number of open requests by model. */
  readonly #open = new Map<string, number>();

  constructor({ hasModel, hasUpstream, nowMs }: TrafficOptions) {
    this.#nowMs = nowMs;
    this.#models = new BoundedSeries({ most: maxLabels, make: newModel, isGone: (id) => !hasModel(id) });
    this.#upstreams = new BoundedSeries({
      most: maxLabels,
      make: (label) => ({ label, tookMs: Number.NEGATIVE_INFINITY, underReported: 0, attempts: new Map() }),
      isGone: (name) => !hasUpstream(name),
    });
  }

  /** The number of HTTP requests that have ended. */
  get httpRequests(): number {
    return this.#exchanges.count;
  }

  httpEnded(end: HttpEnd): void {
    this.#exchanges.ended(end);
  }

  inferenceBegan({ model }: UsageBegin): void {
    this.#open.set(model, (this.#open.get(model) ?? 0) + 1);
  }

  inferenceEnded(begin: UsageBegin, end: UsageEnd, course: InferenceCourse): void {
    const { attempts, fallbackModel, extraNanoUsd = 0, refusal, isUnderReported, cache, continuations } = course;
    const { model } = begin;
    const open = this.#open.get(model) ?? 0;
    if (open > 1) this.#open.set(model, open - 1);
    else this.#open.delete(model);
    const series = this.#models.of(model);
    const { outcome, upstream, errorCode, firstTokenMs, nanoUsd } = end;
    const code = errorCode ?? (outcome === "failed" ? "internal_error" : "");
    this.#count(series, begin, upstream ?? "", outcome, code);
    series.promptTokens += end.promptTokens;
    series.completionTokens += end.completionTokens;
    if (nanoUsd !== null) series.nanoUsd = (series.nanoUsd ?? 0) + nanoUsd;
    series.duration.observe(end.durationMs);
    series.queue.observe(end.queueMs);
    if (firstTokenMs !== null) {
      series.firstToken.observe(firstTokenMs);
      const generation = generationOf(end);
      if (generation && generation.tokens > 0) series.perToken.observe(generation.ms / generation.tokens);
    }
    if (attempts > 1) series.retries += attempts - 1;
    if (fallbackModel !== undefined) series.fallbacks++;
    series.extraNanoUsd += extraNanoUsd;
    if (cache !== undefined) {
      series.cache ??= new Map();
      series.cache.set(cache, (series.cache.get(cache) ?? 0) + 1);
    }
    if (continuations) {
      series.continuations ??= { continued: 0, failed: 0, unfit: 0 };
      for (const outcome of continuations) series.continuations[outcome]++;
    }
    if (refusal !== undefined) this.#refused(refusal);
    if (isUnderReported && upstream !== null) this.#upstreams.of(upstream).underReported++;
  }

  inferenceRefused(refused: RefusedInference): void {
    const { error } = refused;
    const isKnown = error instanceof GatewayError;
    this.#count(this.#models.of(refused.model), refused, "", "refused", isKnown ? error.code : "internal_error");
    if (isKnown && error.refusal !== undefined) this.#refused(error.refusal);
  }

  attempted(upstream: string, model: string, error: unknown, cause?: AttemptCause): void {
    const { attempts, label } = this.#upstreams.of(upstream);
    if (error === undefined) this.took(upstream);
    const result = error === undefined ? "ok" : error instanceof GatewayError ? error.code : faultOf(error);
    const isOwn = label === upstream && (attempts.has(model) || attempts.size < maxModelsOfUpstream);
    const name = isOwn ? model : otherLabel;
    let counters = attempts.get(name);
    if (!counters) {
      counters = new Map();
      attempts.set(name, counters);
    }
    const key = cause === undefined ? result : `${result} ${cause}`;
    let counter = counters.get(key);
    if (!counter) {
      const labels = labelText({ upstream: label, model: name, result, cause: cause ?? "" });
      counter = { labels, count: 0 };
      counters.set(key, counter);
    }
    counter.count++;
  }

  took(upstream: string): void {
    this.#upstreams.of(upstream).tookMs = this.#nowMs();
  }

  /** Returns the monotonic milliseconds at which the upstream last accepted a request; minus infinity if never. */
  tookMs(upstream: string): number {
    return this.#upstreams.find(upstream)?.tookMs ?? Number.NEGATIVE_INFINITY;
  }

  /** Writes the metrics. `waiting` is the number of queued requests by model. */
  write(out: Exposition, waiting: ReadonlyMap<string, number>): void {
    this.#exchanges.write(out);
    this.#writeRequests(out);
    this.#writeOpen(out, waiting);
    this.#writeTimes(out);
    out.family(
      "headrace_refusals_total",
      "counter",
      "Requests that were refused because of a limit, a quota or missing capacity.",
    );
    for (const { labels, count } of this.#refusals) out.sample(labels, count);
    const ended = "headrace_upstream_attempts_total";
    out.family(
      ended,
      "counter",
      "Attempts at a model of an upstream, by result. `cause` is set if the upstream failed.",
    );
    for (const { attempts } of this.#upstreams.all()) {
      for (const counters of attempts.values()) {
        for (const { labels, count } of counters.values()) out.sample(labels, count);
      }
    }
    const doubted = "headrace_upstream_usage_understated_total";
    out.family(doubted, "counter", "Answers for which an upstream reported fewer tokens than it delivered.");
    for (const { label, underReported } of this.#upstreams.all()) {
      if (underReported > 0) out.sample(labelText({ upstream: label }), underReported);
    }
  }

  #refused(reason: RefusalReason): void {
    for (const one of this.#refusals) if (one.reason === reason) one.count++;
  }

  #count(
    model: ModelSeries,
    { operation, environment }: Pick<UsageBegin, "operation" | "environment">,
    upstream: string,
    outcome: string,
    code: string,
  ): void {
    const { requests } = model;
    const about = { operation, upstream, outcome, code, environment };
    const known = find(requests, about) ?? this.#newRequests(requests, model.label, about);
    known.count++;
  }

  #newRequests(requests: RequestSeries[], model: string, about: RequestLabels): RequestSeries {
    const { upstream } = about;
    if (upstream !== "") {
      const label = requests.length < maxRequestSeries ? this.#upstreams.of(upstream).label : otherLabel;
      const other = { ...about, upstream: label };
      const known = label === upstream ? undefined : find(requests, other);
      if (known) return known;
      about = other;
    }
    const { operation, outcome, code, environment } = about;
    const labels = labelText({
      ...{ operation, model, upstream: about.upstream, outcome, error_code: code, environment },
    });
    const series = { ...about, labels, count: 0 };
    requests.push(series);
    return series;
  }

  #writeRequests(out: Exposition): void {
    const name = "headrace_inference_requests_total";
    out.family(name, "counter", "Requests to models, by outcome. `refused`: by a limit, before the start.");
    for (const { requests } of this.#models.all()) for (const { labels, count } of requests) out.sample(labels, count);
    const sums = [
      ["headrace_prompt_tokens_total", "Prompt tokens, as billed.", "promptTokens"],
      ["headrace_completion_tokens_total", "Completion tokens, as billed.", "completionTokens"],
      ["headrace_retries_total", "Further attempts at an upstream after a failed one.", "retries"],
      ["headrace_fallbacks_total", "Requests that a fallback model answered.", "fallbacks"],
    ] as const;
    for (const [sum, help, member] of sums) {
      out.family(sum, "counter", help);
      for (const series of this.#models.all()) out.sample(series.labels, series[member]);
    }
    const extra = "headrace_fallback_extra_usd_total";
    out.family(extra, "counter", "Amount by which fallback models cost more than the requested model would have.");
    for (const { labels, extraNanoUsd } of this.#models.all()) out.sample(labels, usdOf(extraNanoUsd));
    out.family("headrace_cache_requests_total", "counter", "Requests that were looked up in the response cache.");
    for (const { label, cache } of this.#models.all()) {
      for (const [result, count] of cache ?? []) out.sample(labelText({ model: label, result }), count);
    }
    out.family(
      "headrace_continuations_total",
      "counter",
      "Streams that an upstream cut, by whether another deployment continued them.",
    );
    for (const { label, continuations } of this.#models.all()) {
      if (!continuations) continue;
      for (const outcome of continuationOutcomes) {
        out.sample(labelText({ model: label, outcome }), continuations[outcome]);
      }
    }
    out.family("headrace_spend_usd_total", "counter", "Cost of requests to models with a price.");
    for (const { labels, nanoUsd } of this.#models.all()) if (nanoUsd !== undefined) out.sample(labels, usdOf(nanoUsd));
  }

  #writeOpen(out: Exposition, waiting: ReadonlyMap<string, number>): void {
    const gauges = [
      [
        "headrace_inference_requests_in_flight",
        "Admitted requests that have not ended, including queued ones.",
        this.#open,
      ],
      ["headrace_inference_requests_waiting", "Requests that wait for a slot at an upstream.", waiting],
    ] as const;
    for (const [, , counts] of gauges) for (const model of counts.keys()) this.#models.of(model);
    for (const [name, help, counts] of gauges) {
      out.family(name, "gauge", help);
      const byLabels = new Map<string, number>();
      for (const { labels } of this.#models.all()) byLabels.set(labels, 0);
      for (const [model, count] of counts) {
        const { labels } = this.#models.of(model);
        byLabels.set(labels, (byLabels.get(labels) ?? 0) + count);
      }
      for (const [labels, count] of byLabels) out.sample(labels, count);
    }
  }

  #writeTimes(out: Exposition): void {
    const times = [
      [
        "headrace_time_to_first_token_seconds",
        "Time from admission to the first content of a streamed answer.",
        "firstToken",
      ],
      ["headrace_time_per_output_token_seconds", "Mean time between two tokens of a streamed answer.", "perToken"],
      ["headrace_inference_duration_seconds", "Time from admission to the end of the answer.", "duration"],
      ["headrace_queue_time_seconds", "Time in the queue for a slot at an upstream, 0 without waiting.", "queue"],
    ] as const;
    for (const [name, help, member] of times) {
      out.family(name, "histogram", help);
      for (const series of this.#models.all()) out.lines(series[member].lines(name, series.labels));
    }
  }
}

function newModel(label: string): ModelSeries {
  return {
    label,
    labels: labelText({ model: label }),
    requests: [],
    firstToken: new Histogram(firstTokenTimes),
    perToken: new Histogram(tokenTimes),
    duration: new Histogram(requestTimes),
    queue: new Histogram(queueTimes),
    promptTokens: 0,
    completionTokens: 0,
    nanoUsd: undefined,
    retries: 0,
    fallbacks: 0,
    extraNanoUsd: 0,
    cache: undefined,
    continuations: undefined,
  };
}

/** A linear search, because a model has few series and the most frequent ones come first. */
function find(requests: readonly RequestSeries[], about: RequestLabels): RequestSeries | undefined {
  for (let i = 0; i < requests.length; i++) {
    const one = requests[i] as RequestSeries;
    if (
      one.upstream === about.upstream &&
      one.outcome === about.outcome &&
      one.operation === about.operation &&
      one.environment === about.environment &&
      one.code === about.code
    ) {
      return one;
    }
  }
  return undefined;
}

/** Returns the error label if the error is no GatewayError: the client left, or the gateway failed. */
function faultOf(error: unknown): string {
  return error instanceof DOMException && error.name === "AbortError" ? "cancelled" : "internal_error";
}
