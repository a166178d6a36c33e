// One response or transcript of a realtime session. Each is admitted, recorded in the ledger, and settled exactly once.
import type { GatewayError } from "../../base/errors.ts";
import type { LogFields } from "../../base/log.ts";
import type { Granted } from "../../domain/limits/limits.ts";
import type { Model } from "../../domain/models/model.ts";
import { keyOf, type Principal } from "../../domain/principal.ts";
import type { InferenceCourse } from "../../domain/usage/observer.ts";
import type { TokenUsage, UsageBegin, UsageEnd, UsageOutcome } from "../../domain/usage/usage.ts";
import { Meter } from "../../policy/meter.ts";
import { usageBounds } from "../../policy/usage-bounds.ts";
import { partsOf } from "../../requests/dialects/reported-parts.ts";
import type { InferenceDeps } from "../call.ts";
import type { Json } from "./reported-usage.ts";
import { addSpoken, type Spoken, spokenTokens } from "./said-so-far.ts";

/** Reports one response to the log, to traces and to metrics. */
export interface RequestLine {
  readonly requestId: string;
  readonly line: Record<string, LogFields[string]>;
  isOnLedger: boolean;
  /** Sets the principal. Throws `rate_limit_exceeded` if the key has too many open requests. */
  by(principal: Principal): unknown;
  durationNow(): number;
  finish(error?: GatewayError): void;
}

export interface BookingDeps
  extends Pick<InferenceDeps, "clock" | "ledger" | "observer" | "quotaWatch" | "refusalCounts" | "requestTags"> {
  admitter: Pick<InferenceDeps["admitter"], "admit">;
}

export interface Booking {
  principal: Principal;
  model: Model;
  upstream: string;
  /** Value of the header `x-headrace-tags` from the request that opened the connection. */
  tagHeader: string | null;
  /** Estimated tokens of the prompt. */
  promptTokens: number;
  /** Maximum tokens that the client requested. They are reserved. Undefined without a limit. */
  maxTokens: number | undefined;
}

/**
 * The limits of plausible usage. Only the model's context limits it: the server may have refused the session's
 * settings, or know them by another name.
 */
const unbounded = { bodyBytes: 0, hasMedia: true, width: 1, maxCompletionTokens: undefined };
const noTiers: readonly string[] = [];
/**
 * The reservation of a transcript that limits refuse. The transcript already exists, so it is charged without a
 * reservation.
 */
const nothingSetAside: Pick<Granted, "lease" | "reservedTokens" | "stop"> = {
  lease: { extend() {}, settle() {} },
  reservedTokens: 0,
  stop: undefined,
};

/**
 * Admits a response. Resolves when the response is in the ledger. If it is refused, reports the refusal to metrics and
 * rejects.
 */
export async function bookResponse(booking: Booking, line: RequestLine, deps: BookingDeps): Promise<BookedResponse> {
  const { principal, model } = booking;
  try {
    line.by(principal);
    const tags = deps.requestTags.of(principal, booking.tagHeader, { endUser: undefined, metadata: undefined });
    const admitted = await deps.admitter.admit(principal, sizeOf(booking, tags, line), { onLimits() {} });
    return await BookedResponse.begin(booking, tags, admitted, line, deps);
  } catch (error) {
    const { requestId } = line;
    const { environment } = principal;
    deps.refusalCounts.count(principal, model.id, error);
    deps.observer?.inferenceRefused({ requestId, operation: "realtime", model: model.id, environment, error });
    throw error;
  }
}

/**
 * Charges usage that has already happened, and records it in the ledger. If limits are exceeded, still charges the
 * usage and resolves to the refusal. Rejects if the ledger cannot be written.
 */
export async function bookReported(
  booking: Booking,
  usage: TokenUsage,
  line: RequestLine,
  deps: BookingDeps,
): Promise<unknown> {
  let refusal: unknown;
  let booked: BookedResponse;
  try {
    booked = await bookResponse(booking, line, deps);
  } catch (error) {
    refusal = error;
    booked = await BookedResponse.begin(booking, booking.principal.tags, nothingSetAside, line, deps);
  }
  await booked.settle("completed", usage);
  return refusal;
}

function sizeOf({ model, promptTokens, maxTokens }: Booking, tags: readonly string[] | undefined, line: RequestLine) {
  const asked = { hasMedia: true, askedTiers: () => noTiers };
  const { requestId } = line;
  return { model, promptTokens, maxCompletionTokens: maxTokens, width: 1, stream: true, tags, requestId, asked };
}

export class BookedResponse {
  readonly #booking: Booking;
  readonly #line: RequestLine;
  readonly #deps: BookingDeps;
  readonly #begin: UsageBegin;
  readonly #meter: Meter;
  readonly #spoken: Spoken = { textBytes: 0, audioBytes: 0 };
  readonly #usageSoFar = () => this.usageSoFar;
  #isOver = false;

  private constructor(
    booking: Booking,
    tags: readonly string[] | undefined,
    granted: Pick<Granted, "lease" | "reservedTokens" | "stop">,
    line: RequestLine,
    deps: BookingDeps,
  ) {
    const { principal, model } = booking;
    this.#booking = booking;
    this.#line = line;
    this.#deps = deps;
    this.#begin = {
      requestId: line.requestId,
      at: deps.clock.nowSeconds(),
      accountId: principal.account.id,
      keyId: keyOf(principal).id,
      appId: principal.appId,
      environment: principal.environment,
      operation: "realtime",
      model: model.id,
      stream: true,
      tags,
    };
    const bounds = usageBounds(model, unbounded);
    this.#meter = new Meter(deps, granted, this.#begin, model.price, bounds);
    line.line["model"] = model.id;
    line.line["stream"] = true;
  }

  static async begin(
    booking: Booking,
    tags: readonly string[] | undefined,
    granted: Pick<Granted, "lease" | "reservedTokens" | "stop">,
    line: RequestLine,
    deps: BookingDeps,
  ): Promise<BookedResponse> {
    const booked = new BookedResponse(booking, tags, granted, line, deps);
    deps.observer?.inferenceBegan(booked.#begin);
    try {
      await booked.#meter.begun;
    } catch (error) {
      // The whole reservation is returned, because nothing was used.
      const usage = { promptTokens: 0, completionTokens: 0, estimated: true };
      const { upstream } = booking;
      const { end } = booked.#meter.settle({ outcome: "failed", usage, errorCode: null, upstream, queueMs: 0 });
      deps.observer?.inferenceEnded(booked.#begin, end, courseOf(undefined));
      throw error;
    }
    line.isOnLedger = true;
    return booked;
  }

  /** True if the response is settled. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Returns the usage so far, estimated from the output that was delivered. */
  get usageSoFar(): TokenUsage {
    const { all, audio } = spokenTokens(this.#spoken);
    return {
      promptTokens: this.#booking.promptTokens,
      completionTokens: all,
      estimated: true,
      parts: audio === 0 ? undefined : partsOf({ details: { outputAudioTokens: audio } }),
    };
  }

  /**
   * Counts an event that the client gets. Returns whether quotas allow the response to continue. After a returned
   * promise has settled, call `recheck`.
   */
  heard(event: Json): "goes_on" | "spent" | Promise<void> {
    if (this.#isOver || !addSpoken(this.#spoken, event)) return "goes_on";
    const { all } = spokenTokens(this.#spoken);
    this.#meter.delivered(this.#booking.promptTokens + all, this.#usageSoFar);
    const { stop } = this.#meter;
    return stop && all > stop.dueTokens ? this.#meter.checkStop(this.usageSoFar) : "goes_on";
  }

  /** Checks again whether quotas allow the response to continue. */
  recheck(): "goes_on" | "spent" | Promise<void> {
    return this.#meter.checkStop(this.usageSoFar);
  }

  /** Settles the response. Resolves when its record is durably stored. Never rejects. Later calls do nothing. */
  async settle(outcome: UsageOutcome, usage: TokenUsage, error?: GatewayError): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    const { principal, upstream } = this.#booking;
    const { observer, quotaWatch } = this.#deps;
    const errorCode = error?.code ?? null;
    const { end, kept } = this.#meter.settle({ outcome, usage, errorCode, upstream, queueMs: 0 });
    observer?.inferenceEnded(this.#begin, end, courseOf(error, usage.understated));
    quotaWatch?.used(principal);
    logLine(this.#line.line, outcome, end);
    await kept;
    this.#line.finish(outcome === "failed" ? error : undefined);
  }
}

function courseOf(error: GatewayError | undefined, isUnderReported = false): InferenceCourse {
  return { attempts: 1, fallbackModel: undefined, isUnderReported, refusal: error?.refusal };
}

function logLine(
  line: RequestLine["line"],
  outcome: UsageOutcome,
  { promptTokens, completionTokens, estimated }: UsageEnd,
) {
  line["outcome"] = outcome;
  line["prompt_tokens"] = promptTokens;
  line["completion_tokens"] = completionTokens;
  if (estimated) line["estimated"] = estimated;
}
