// Answers a model request over HTTP: reads and validates its body, runs it, and sends text or a stream.

import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import type { GatewayError } from "../../base/errors.ts";
import type { LimitStatus } from "../../domain/limits/limits.ts";
import type { Deployment } from "../../domain/models/model.ts";
import { loggedModel } from "../../domain/models/model-patterns.ts";
import type { Operation } from "../../domain/models/operation.ts";
import type { Priority } from "../../domain/models/policies/priority.ts";
import type { Principal } from "../../domain/principal.ts";
import type { CacheResult } from "../../domain/usage/cache-result.ts";
import { tagHeader } from "../../domain/usage/request-tags.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { UsageEnd, UsageOutcome } from "../../domain/usage/usage.ts";
import type { IncomingRequest } from "../../http1/message.ts";
import { cacheHeader } from "../../inference/cache/answer-cache.ts";
import type { InferenceAnswer, InferenceCall, InferenceDeps } from "../../inference/call.ts";
import { countTokens, type TokenCount } from "../../inference/count-tokens.ts";
import type { Guarding } from "../../inference/guarding.ts";
import { logEnd } from "../../inference/log-usage.ts";
import type { QueuePosition } from "../../inference/routing/capacity.ts";
import { run } from "../../inference/run.ts";
import type { FormSettings } from "../../multipart/form-settings.ts";
import type { Admitter } from "../../policy/admit.ts";
import { priorityAsked, priorityHeader } from "../../policy/request-priority.ts";
import type { Throttle } from "../../policy/throttle.ts";
import { decodeCountRequest, decodeRequest, type RequestLimits } from "../../requests/decode/decode-request.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { dialects } from "../../requests/dialects/dialects.ts";
import { type KeptDeps, withKeptInput } from "../../responses/kept-input.ts";
import { renderAnthropicError } from "../../wire/anthropic-errors.ts";
import { renderError, toGatewayError } from "../../wire/errors.ts";
import { readJsonBytes } from "../content/body.ts";
import { codingOf } from "../content/content-encoding.ts";
import { requestIdHeader } from "../exchange/anthropic-errors.ts";
import { anthropicLimitHeaders } from "../exchange/anthropic-limits.ts";
import { contentTypeOptions } from "../exchange/browser-headers.ts";
import { HandedOver } from "../exchange/handed-over.ts";
import { limitHeaders } from "../exchange/limit-headers.ts";
import type { Answer, DeferredLine, Exchange } from "../exchange/route.ts";
import { readInTurn } from "./content-reads.ts";
import { ignoredMembers } from "./ignored-members.ts";
import { readMessageHeaders } from "./message-headers.ts";
import { responseOwnerOf } from "./response-owner.ts";
import type { RefusedInferenceDeps } from "./usage/refused-inference.ts";

export interface InferenceRouteDeps extends InferenceDeps, KeptDeps, Pick<RefusedInferenceDeps, "refusedRequests"> {
  admitter: Pick<Admitter, "admit" | "admitDearer" | "learn" | "learnCached" | "refuseSpent">;
  /** Returns the limits of a request. Called for every request, because a reload may change them. */
  requestLimits(): RequestLimits;
  /** Reports whether another process must handle the request. Undefined if this process handles all requests. */
  isElsewhere?: ((request: DecodedRequest, principal: Principal) => boolean) | undefined;
  /**
   * Returns the maximum length of a body that this process reads. Another process reads longer bodies. Returns
   * undefined if there is no maximum.
   */
  maxReadBytes?: (() => number) | undefined;
  /** The storage that buffers forms with files. Undefined if another process reads forms. */
  forms?: FormSettings | undefined;
}

const jsonType = { "content-type": "application/json" } as const;
export const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  // Tells nginx and similar proxies not to buffer events.
  "x-accel-buffering": "no",
} as const;

/** Runs a decoded request, whose input already includes the earlier conversation. */
export type Runs<Deps> = (
  exchange: Exchange,
  principal: Principal,
  request: DecodedRequest,
  deps: Deps,
) => MaybePromise<Answer>;

export function answerInference<Deps extends InferenceRouteDeps>(
  operation: Operation,
  exchange: Exchange,
  principal: Principal,
  deps: Deps,
  runs: Runs<Deps> = runFor,
): MaybePromise<Answer> {
  const limits = deps.requestLimits();
  if (deps.maxReadBytes && mayBeLonger(exchange.req, deps.maxReadBytes())) throw new HandedOver();
  if (!exchange.req.bodyIsHere) return answerOnceHere(operation, exchange, principal, deps, runs);
  const read = readJsonBytes(exchange.req, limits);
  if (read instanceof Promise) return answerLater(operation, exchange, principal, deps, runs, read);
  const request = decodeRequest(operation, read, limits);
  if (deps.isElsewhere?.(request, principal)) throw new HandedOver(read);
  if (request.namesKept) return runWithKept(exchange, principal, request, deps, runs);
  return runs(exchange, principal, request, deps);
}

/** Reports whether the body may be longer than `bytes` after decompression. */
function mayBeLonger({ headers, bodyIsHere }: IncomingRequest, bytes: number): boolean {
  if (codingOf(headers.get("content-encoding"))) return true;
  const length = headers.get("content-length");
  return length === null ? !bodyIsHere : Number(length) > bytes;
}

/**
 * Loads the stored conversation that the request continues, because limits, prompt and routing depend on all of
 * it. Nothing is loaded if the caller's request limit is reached.
 */
async function runWithKept<Deps extends InferenceRouteDeps>(
  exchange: Exchange,
  principal: Principal,
  request: DecodedRequest,
  deps: Deps,
  runs: Runs<Deps>,
): Promise<Answer> {
  logAsked(exchange, request);
  await deps.admitter.refuseSpent(principal, {
    onLimits: (status) => addLimitHeaders(request.operation, status, exchange, deps),
  });
  const limits = deps.requestLimits();
  const options = { owner: responseOwnerOf(principal), limits, hold: (bytes: number) => exchange.req.hold(bytes) };
  return await runs(exchange, principal, await withKeptInput(request, deps, options), deps);
}

/** Waits for the rest of the body. A caller whose request limit is reached is refused before. */
async function answerOnceHere<Deps extends InferenceRouteDeps>(
  operation: Operation,
  exchange: Exchange,
  principal: Principal,
  deps: Deps,
  runs: Runs<Deps>,
): Promise<Answer> {
  const spent = deps.admitter.refuseSpent(principal, {
    onLimits: (status) => addLimitHeaders(operation, status, exchange, deps),
  });
  if (spent) await spent;
  const body = readJsonBytes(exchange.req, deps.requestLimits());
  return answerLater(operation, exchange, principal, deps, runs, body);
}

async function answerLater<Deps extends InferenceRouteDeps>(
  operation: Operation,
  exchange: Exchange,
  principal: Principal,
  deps: Deps,
  runs: Runs<Deps>,
  body: ByteSpan | Promise<ByteSpan>,
): Promise<Answer> {
  const read = await body;
  const request = decodeRequest(operation, read, deps.requestLimits());
  if (deps.isElsewhere?.(request, principal)) throw new HandedOver(read);
  if (request.namesKept) return await runWithKept(exchange, principal, request, deps, runs);
  return await runs(exchange, principal, request, deps);
}

export const countErrors = [
  "invalid_request",
  "model_not_found",
  "request_too_large",
  "unsupported_media_type",
] as const;

export interface CountRouteDeps extends InferenceRouteDeps {
  throttle: Pick<Throttle, "allows">;
}

/**
 * Counts the tokens of a prompt, without running the model and without charge. A key that counts too often gets
 * estimates.
 */
export async function countFor(
  operation: Operation,
  exchange: Exchange,
  principal: Principal,
  deps: CountRouteDeps,
): Promise<TokenCount> {
  const limits = deps.requestLimits();
  const sent = decodeCountRequest(operation, await readJsonBytes(exchange.req, limits), limits);
  exchange.line["model"] = loggedModel(sent.model);
  const { requestId, req } = exchange;
  if (sent.dialect.maker === "anthropic") sent.messageHeaders = readMessageHeaders(req.headers, sent);
  const kept = { owner: responseOwnerOf(principal), limits, hold: (bytes: number) => req.hold(bytes) };
  // Counting has no rate limit, and a short request may load a long conversation. So accounts wait for their turn.
  const request = sent.namesKept ? await readInTurn(exchange, principal, () => withKeptInput(sent, deps, kept)) : sent;
  const mayAsk = () => deps.throttle.allows("count", principal);
  return countTokens(
    { request, principal, requestId, clientGone: req.clientGone, memoryAccount: req.memoryAccount, mayAsk },
    deps,
  );
}

/** Adds rate-limit headers. Messages requests also get them in Anthropic's form. */
export function addLimitHeaders(
  operation: Operation,
  status: LimitStatus,
  { answerHeaders }: Exchange,
  { clock }: Pick<InferenceDeps, "clock">,
): void {
  limitHeaders(status, answerHeaders);
  if (dialects[operation].maker === "anthropic")
    anthropicLimitHeaders(status, clock.nowSeconds() * 1000, answerHeaders);
}

/** Runs a decoded request and answers the HTTP request. */
export function runFor(
  exchange: Exchange,
  principal: Principal,
  request: DecodedRequest,
  deps: InferenceDeps,
  runs: typeof run = run,
): MaybePromise<Answer> {
  logAsked(exchange, request);
  exchange.trace?.asked(request);
  return runs(new HttpCall(exchange, principal, request, deps), deps);
}

export function logAsked({ line }: Exchange, request: DecodedRequest): void {
  line["model"] = loggedModel(request.model);
  line["stream"] = request.stream;
}

/** The largest integer of a structured field (RFC 9651, 3.3.1). Larger numbers are reduced to it. */
const largestInteger = 999_999_999_999_999;
const integer = (amount: number) => Math.min(amount, largestInteger);

/** Returns the settled token usage as a structured dictionary (RFC 9651), with its parts and cost if there are any. */
export function usageHeader({ promptTokens, completionTokens, parts, nanoUsd }: UsageEnd): string {
  let text = `prompt_tokens=${integer(promptTokens)}`;
  if (parts && parts.cachedTokens > 0) text += `, cached_tokens=${integer(parts.cachedTokens)}`;
  if (parts && parts.cacheWriteTokens > 0) text += `, cache_write_tokens=${integer(parts.cacheWriteTokens)}`;
  text += `, completion_tokens=${integer(completionTokens)}`;
  if (parts && parts.reasoningTokens > 0) text += `, reasoning_tokens=${integer(parts.reasoningTokens)}`;
  return nanoUsd === null ? text : `${text}, nano_usd=${integer(nanoUsd)}`;
}

const findingWords = { mask: "masked", block: "blocked", note: "noted" } as const;

/**
 * Returns how often guardrails masked, blocked and noted a finding, as a structured dictionary (RFC 9651). Empty if
 * there was no finding.
 */
export function guardrailHeader(findings: Guarding["findings"]): string {
  const counts = Object.entries(findingWords).map(([action, word]) => {
    const count = findings.reduce((sum, one) => sum + (one.action === action ? one.count : 0), 0);
    return count === 0 ? "" : `${word}=${count}`;
  });
  return counts.filter((text) => text !== "").join(", ");
}

/**
 * Returns headers with the time that the request waited for a slot. If the stream began during the wait, also the
 * position in the queue.
 */
function queueHeaders(waitedMs: number, position: QueuePosition | undefined): Record<string, string> {
  const headers: Record<string, string> = { "x-headrace-queue-ms": String(waitedMs) };
  if (!position) return headers;
  headers["x-headrace-queue-place"] = `${position.place}/${position.of}`;
  if (position.expectedMs !== undefined) headers["x-headrace-queue-expected-ms"] = String(position.expectedMs);
  return headers;
}

/** A model request over HTTP. The inference code calls its methods with the answer and the outcome. */
class HttpCall implements InferenceCall<Answer> {
  request: DecodedRequest;
  readonly principal: Principal;
  readonly priority: Priority | undefined;
  readonly #exchange: Exchange;
  readonly #deps: Pick<InferenceDeps, "clock">;
  #log: DeferredLine | undefined;

  constructor(exchange: Exchange, principal: Principal, request: DecodedRequest, deps: Pick<InferenceDeps, "clock">) {
    this.#deps = deps;
    if (request.dialect.maker === "anthropic") {
      request.messageHeaders = readMessageHeaders(exchange.req.headers, request);
      Object.assign(exchange.answerHeaders, requestIdHeader(exchange.requestId));
    }
    this.#exchange = exchange;
    this.principal = principal;
    this.priority = priorityAsked(exchange.req.headers.get(priorityHeader), principal);
    this.request = request;
  }

  get passesLongAnswers(): boolean {
    return true;
  }

  get requestId(): string {
    return this.#exchange.requestId;
  }

  get tagHeader(): string | null {
    return this.#exchange.req.headers.get(tagHeader);
  }

  get cacheHeader(): string | null {
    return this.#exchange.req.headers.get(cacheHeader);
  }

  get clientGone(): Cancellation {
    return this.#exchange.req.clientGone;
  }

  get memoryAccount(): MemoryAccount {
    return this.#exchange.req.memoryAccount;
  }

  get trace(): RequestTrace | undefined {
    return this.#exchange.trace;
  }

  renderError(error: GatewayError): string {
    return this.request.dialect.maker === "anthropic"
      ? renderAnthropicError(error, this.requestId)
      : renderError(error);
  }

  onLimits(status: LimitStatus): void {
    addLimitHeaders(this.request.operation, status, this.#exchange, this.#deps);
  }

  onServedBy(model: string): void {
    this.#exchange.answerHeaders["x-headrace-model"] = model;
    this.#exchange.line["served_by"] = model;
  }

  onIgnored(members: readonly string[]): void {
    this.#exchange.answerHeaders["x-headrace-ignored"] = ignoredMembers(members);
  }

  onCapped(tokens: number): void {
    this.#exchange.answerHeaders["x-headrace-max-tokens"] = String(tokens);
  }

  onContinued(times: number): void {
    this.#exchange.line["continued"] = times;
  }

  onFindings(findings: Guarding["findings"]): void {
    const header = guardrailHeader(findings);
    if (header !== "") this.#exchange.answerHeaders["x-headrace-guardrails"] = header;
  }

  onQueued(waitedMs: number, position: QueuePosition | undefined): void {
    Object.assign(this.#exchange.answerHeaders, queueHeaders(waitedMs, position));
  }

  onCache(result: CacheResult, ageSeconds: number | undefined): void {
    this.#exchange.line["cache"] = result;
    this.#exchange.answerHeaders[cacheHeader] = result;
    if (ageSeconds !== undefined) this.#exchange.answerHeaders["age"] = String(ageSeconds);
  }

  onLedger(): void {
    this.#exchange.isOnLedger = true;
  }

  onEnd(outcome: UsageOutcome, usage: UsageEnd, error: unknown, served?: Deployment): void {
    logEnd(this.#exchange.line, outcome, usage, served);
    // The headers of a stream have already been sent, so only other answers get this header.
    if (outcome === "completed" && !this.#log) this.#exchange.answerHeaders["x-headrace-usage"] = usageHeader(usage);
    this.#log?.finish(outcome === "failed" ? toGatewayError(error) : undefined);
  }

  answer(answer: InferenceAnswer): Answer {
    if (typeof answer === "object" && "contentType" in answer) {
      this.#log = this.#exchange.defer();
      const headers = {
        ...{ "content-type": answer.contentType, "x-accel-buffering": "no" },
        "x-content-type-options": contentTypeOptions,
      };
      return { status: 200, headers, begin: (client) => answer.begin(client) };
    }
    if (typeof answer !== "function") return { status: 200, headers: jsonType, body: answer };
    this.#log = this.#exchange.defer();
    return { status: 200, headers: streamHeaders, begin: answer };
  }
}
