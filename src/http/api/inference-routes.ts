// The endpoints that run models: the body is checked once, handed over to `run`, and answered with text or a stream.

import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { Holder } from "../../base/bytes/held-bytes.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { GatewayError } from "../../base/errors.ts";
import type { Eventual } from "../../base/later.ts";
import { dialects } from "../../dialects/dialects.ts";
import { maskKeys } from "../../domain/api-key.ts";
import type { LimitStatus } from "../../domain/limits/limits.ts";
import type { Operation } from "../../domain/models/operation.ts";
import type { Principal } from "../../domain/principal.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { TokenUsage, UsageOutcome } from "../../domain/usage/usage.ts";
import type { InferenceAnswer, InferenceCall, InferenceDeps } from "../../inference/call.ts";
import type { DecodedRequest } from "../../inference/decoded-request.ts";
import { run } from "../../inference/run.ts";
import type { Admitter } from "../../policy/admit.ts";
import { chatChunk, chatCompletion } from "../../wire/chat.ts";
import { textCompletion } from "../../wire/completion.ts";
import { embeddingList } from "../../wire/embedding.ts";
import { readJsonBytes } from "../content/body.ts";
import { decodeRequest, type RequestLimits } from "../decode/decode-request.ts";
import { renderError, toGatewayError } from "../exchange/errors.ts";
import { limitHeaders } from "../exchange/limit-headers.ts";
import type { Answer, DeferredLine, Exchange, RouteDoc, ScopedRoute } from "../exchange/route.ts";
import { noteRefused, type RefusedInferenceDeps } from "./usage/refused-inference.ts";

export interface InferenceRouteDeps extends InferenceDeps, Pick<RefusedInferenceDeps, "refusedRequests"> {
  admitter: Pick<Admitter, "admit" | "learn" | "refuseSpent">;
  /** Read for every request: a reload may change them. */
  requestLimits(): RequestLimits;
}

const inferenceErrors = [
  "invalid_request",
  "model_not_found",
  "request_too_large",
  "unsupported_media_type",
  "insufficient_quota",
  "rate_limit_exceeded",
  "upstream_error",
  "upstream_timeout",
  "service_unavailable",
] as const;

export function inferenceRoutes(deps: InferenceRouteDeps): ScopedRoute[] {
  const route = (
    path: string,
    operation: Operation,
    doc: Omit<RouteDoc, "tag" | "requestBody" | "errors">,
  ): ScopedRoute => ({
    method: "POST",
    path,
    access: "chat:write",
    doc: { ...doc, tag: "Inference", requestBody: dialects[operation].schema, errors: inferenceErrors },
    handle: (exchange, principal) => answer(operation, exchange, principal, deps),
    refused: (exchange, principal, error, durationMs) =>
      noteRefused(operation, exchange, principal, error, durationMs, deps),
  });
  return [
    route("/v1/chat/completions", "chat", {
      operationId: "createChatCompletion",
      summary: "Create a chat completion",
      description:
        "With `stream: true` the answer is a stream of Server-Sent Events that ends with `data: [DONE]`. An error in an open stream is one event with an `error` member, after which the connection closes without `[DONE]`. Lines that begin with a colon are keep-alives.",
      example: { model: "tiny-demo", stream: true, messages: [{ role: "user", content: "Who are you?" }] },
      response: { description: "The completion, or its chunks.", json: chatCompletion, stream: chatChunk },
    }),
    route("/v1/completions", "completion", {
      operationId: "createCompletion",
      summary: "Create a text completion (legacy)",
      example: { model: "tiny-demo", prompt: "Once upon a time", max_tokens: 40 },
      response: { description: "The completion, or its chunks.", json: textCompletion, stream: textCompletion },
    }),
    route("/v1/embeddings", "embedding", {
      operationId: "createEmbedding",
      summary: "Create embeddings",
      example: { model: "tiny-demo", input: ["How do I stream?", "What is the default port?"] },
      response: { description: "One embedding for each input, in order.", json: embeddingList },
    }),
  ];
}

const jsonType = { "content-type": "application/json" } as const;
const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  // Tells nginx and its kind not to hold events back.
  "x-accel-buffering": "no",
} as const;

function answer(
  operation: Operation,
  exchange: Exchange,
  principal: Principal,
  deps: InferenceRouteDeps,
): Eventual<Answer> {
  const limits = deps.requestLimits();
  if (!exchange.req.bodyIsHere) return answerOnceHere(operation, exchange, principal, deps, limits);
  const read = readJsonBytes(exchange.req, limits);
  if (read instanceof Promise) return answerLater(operation, exchange, principal, deps, limits, read);
  return runFor(exchange, principal, decodeRequest(operation, read, limits), deps);
}

/** A body that is still on its way is not waited for in vain. */
async function answerOnceHere(
  operation: Operation,
  exchange: Exchange,
  principal: Principal,
  deps: InferenceRouteDeps,
  limits: RequestLimits,
): Promise<Answer> {
  const spent = deps.admitter.refuseSpent(principal, {
    onLimits: (status) => limitHeaders(status, exchange.answerHeaders),
  });
  if (spent) await spent;
  const body = readJsonBytes(exchange.req, limits);
  return answerLater(operation, exchange, principal, deps, limits, body);
}

async function answerLater(
  operation: Operation,
  exchange: Exchange,
  principal: Principal,
  deps: InferenceRouteDeps,
  limits: RequestLimits,
  body: ByteSpan | Promise<ByteSpan>,
): Promise<Answer> {
  return await runFor(exchange, principal, decodeRequest(operation, await body, limits), deps);
}

function runFor(
  exchange: Exchange,
  principal: Principal,
  request: DecodedRequest,
  deps: InferenceDeps,
): Eventual<Answer> {
  const { line } = exchange;
  line["model"] = maskKeys(request.model);
  line["stream"] = request.stream;
  exchange.trace?.asked(request);
  return run(new HttpCall(exchange, principal, request), deps);
}

/** An inference request as it came by HTTP. */
class HttpCall implements InferenceCall<Answer> {
  readonly request: DecodedRequest;
  readonly principal: Principal;
  readonly #exchange: Exchange;
  #log: DeferredLine | undefined;

  constructor(exchange: Exchange, principal: Principal, request: DecodedRequest) {
    this.#exchange = exchange;
    this.principal = principal;
    this.request = request;
  }

  get requestId(): string {
    return this.#exchange.requestId;
  }

  get left(): Cancellation {
    return this.#exchange.req.left;
  }

  get holder(): Holder {
    return this.#exchange.req.holder;
  }

  get trace(): RequestTrace | undefined {
    return this.#exchange.trace;
  }

  renderError(error: GatewayError): string {
    return renderError(error);
  }

  onLimits(status: LimitStatus): void {
    limitHeaders(status, this.#exchange.answerHeaders);
  }

  onStandIn(model: string): void {
    this.#exchange.answerHeaders["x-headrace-model"] = model;
    this.#exchange.line["served_by"] = model;
  }

  onIgnored(member: "tools"): void {
    this.#exchange.answerHeaders["x-headrace-ignored"] = member;
  }

  onLedger(): void {
    this.#exchange.isOnLedger = true;
  }

  onEnd(outcome: UsageOutcome, { promptTokens, completionTokens, estimated }: TokenUsage, error: unknown): void {
    const { line } = this.#exchange;
    line["outcome"] = outcome;
    line["prompt_tokens"] = promptTokens;
    line["completion_tokens"] = completionTokens;
    if (estimated) line["estimated"] = estimated;
    this.#log?.finish(outcome === "failed" ? toGatewayError(error) : undefined);
  }

  answer(answer: InferenceAnswer): Answer {
    if (typeof answer !== "function") return { status: 200, headers: jsonType, body: answer };
    this.#log = this.#exchange.defer();
    return { status: 200, headers: streamHeaders, begin: answer };
  }
}
