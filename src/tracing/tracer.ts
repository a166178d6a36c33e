// Decides which requests are traced: a share of all requests, and a limited number of those that their clients trace.

import {
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  type Tracer as SpanTracer,
  TraceFlags,
  trace,
} from "@opentelemetry/api";
import { exactMs } from "../base/clock.ts";
import type { RequestTrace, TracedExchange, Tracer } from "../domain/usage/trace.ts";
import { SpanTrace } from "./request-trace.ts";
import { type ClientTrace, readClientTrace } from "./trace-context.ts";

export interface SamplingTracerOptions {
  tracer: SpanTracer;
  /** Share of the traced requests, 0 to 1. */
  sample: number;
  content: boolean;
  /** A random number from 0 to below 1. */
  draw?: () => number;
  /** Returns monotonic milliseconds. */
  nowMs?: () => number;
}

/**
 * Requests per second that are traced beyond the sampled share, because their clients trace them. After a pause, more
 * are traced at once.
 */
export const joinedPerSecond = 10;
const maxJoinedAtOnce = 50;

export class SamplingTracer implements Tracer {
  readonly #tracer: SpanTracer;
  readonly #sample: number;
  readonly #content: boolean;
  readonly #draw: () => number;
  readonly #nowMs: () => number;
  #room = maxJoinedAtOnce;
  #roomAtMs: number;

  constructor({ tracer, sample, content, draw = Math.random, nowMs = () => exactMs() }: SamplingTracerOptions) {
    this.#tracer = tracer;
    this.#sample = sample;
    this.#content = content;
    this.#draw = draw;
    this.#nowMs = nowMs;
    this.#roomAtMs = nowMs();
  }

  begin(exchange: TracedExchange): RequestTrace | undefined {
    const client = readClientTrace(exchange.headers);
    const isDrawn = this.#draw() < this.#sample;
    if (client ? !client.sampled || !(isDrawn || this.#join()) : !isDrawn) return undefined;
    return new SpanTrace({
      tracer: this.#tracer,
      exchange,
      parent: client ? contextOf(client) : ROOT_CONTEXT,
      tracestate: client?.tracestate,
      content: this.#content,
    });
  }

  /**
   * Reports whether a trace beyond the share is allowed. Clients may ask for traces, but not for one of every request.
   */
  #join(): boolean {
    const now = this.#nowMs();
    const since = ((now - this.#roomAtMs) / 1000) * joinedPerSecond;
    this.#room = Math.min(maxJoinedAtOnce, this.#room + since);
    this.#roomAtMs = now;
    if (this.#room < 1) return false;
    this.#room--;
    return true;
  }
}

function contextOf({ traceId, spanId, tracestate }: ClientTrace): Context {
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
    ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
  });
}
