// The spans of one request: the exchange with its client, each wait, and each attempt at an engine.

import {
  type Attributes,
  type Context,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { ByteSpan } from "../base/bytes/byte-span.ts";
import { exactMs, wallMs } from "../base/clock.ts";
import { GatewayError } from "../base/errors.ts";
import type { Engine } from "../domain/models/engine.ts";
import { redactCredentials } from "../domain/redaction.ts";
import type { RequestTrace, TracedCall, TracedExchange, TracedRequest } from "../domain/usage/trace.ts";
import type { TraceHeaders } from "../domain/usage/trace-headers.ts";
import type { UsageEnd } from "../domain/usage/usage.ts";
import type { Dialect } from "../requests/dialects/dialect.ts";
import { dialects } from "../requests/dialects/dialects.ts";
import type { ReportedAnswer } from "../requests/dialects/said.ts";
import { inputMessages, outputMessages, parsed, StreamedContent } from "./content.ts";
import { endUserIn, sessionIn } from "./end-user.ts";
import { genAi, openInference, providerOf, requestAttributes } from "./gen-ai.ts";
import { traceparentOf } from "./trace-context.ts";

/**
 * Maximum length of an answer that is read again for its trace. Longer answers are embeddings, or far beyond the length
 * of a usual answer.
 */
const maxAnswerLength = 1024 * 1024;
const waitNames = { admission: "wait for admission", queue: "wait for capacity" } as const;
const errorType = "error.type";
const jsonType = "application/json";
/** The attribute for an MCP method in the OpenTelemetry conventions. */
const mcpMethod = "mcp.method.name";

export interface SpanTraceOptions {
  tracer: Tracer;
  exchange: TracedExchange;
  /** The context of the client's trace, or the root. */
  parent: Context;
  /** The client's `tracestate`, in the form in which it is passed on. */
  tracestate: string | undefined;
  content: boolean;
}

interface OpenAttempt {
  span: Span;
  engine: Engine;
  startedMs: number;
  reported: ReportedAnswer;
}

export class SpanTrace implements RequestTrace {
  readonly id: string;
  readonly takesContent: boolean;
  readonly #options: SpanTraceOptions;
  /**
   * Unix time minus monotonic time in milliseconds. Times of a trace come from the monotonic clock, so that they never
   * go back.
   */
  readonly #offsetMs = wallMs() - exactMs();
  readonly #span: Span;
  readonly #context: Context;
  #request: TracedRequest | undefined;
  #turnId: string | undefined;
  #attempt: OpenAttempt | undefined;
  #attempts = 0;
  #firstByteMs: number | undefined;
  #isFirstTokenReported = false;
  #dialect: Dialect | undefined;
  #streamed: StreamedContent | undefined;
  /** The ids of user and session, for the root and each attempt. */
  #ids: Attributes;
  #hasInput = false;
  #isOver = false;

  constructor(options: SpanTraceOptions) {
    const { tracer, exchange, parent, content } = options;
    const { method, route, requestId, keyId, actorId, ageMs } = exchange;
    this.#ids = { [openInference.user]: actorId };
    this.#options = options;
    this.takesContent = content;
    this.#span = tracer.startSpan(
      `${method} ${route}`,
      {
        kind: SpanKind.SERVER,
        startTime: this.#now() - ageMs,
        attributes: {
          "http.request.method": method,
          "http.route": route,
          "headrace.request.id": requestId,
          "headrace.key.id": keyId,
          ...this.#ids,
        },
      },
      parent,
    );
    this.#context = trace.setSpan(parent, this.#span);
    this.id = this.#span.spanContext().traceId;
  }

  asked(request: TracedRequest, turnId?: string): void {
    this.#request = request;
    // If guardrails mask a turn, the masked request replaces the original, and the id of the turn stays.
    this.#turnId = turnId ?? this.#turnId;
    this.#dialect = dialects[request.operation];
    this.#span.setAttributes({
      "headrace.operation": this.#dialect.spanName,
      "headrace.model": redactCredentials(request.model),
      "headrace.stream": request.stream,
      [openInference.spanKind]: "CHAIN",
    });
    if (!this.takesContent) return;
    const [user, session] = [endUserIn(request), sessionIn(this.#options.exchange, request)];
    if (user !== undefined) this.#ids[openInference.user] = user;
    if (session !== undefined) this.#ids[openInference.session] = session;
    this.#span.setAttributes(this.#ids);
  }

  waits(what: keyof typeof waitNames): () => void {
    if (this.#isOver) return () => {};
    const span = this.#options.tracer.startSpan(waitNames[what], { startTime: this.#now() }, this.#context);
    return () => span.end(this.#now());
  }

  attempt(engine: Engine, model: string, publicModel: string): TraceHeaders {
    this.#endAttempt(undefined);
    const { tracer, tracestate } = this.#options;
    const startedMs = this.#now();
    const attributes = this.#attemptAttributes(engine, model, publicModel);
    const options = { kind: SpanKind.CLIENT, startTime: startedMs, attributes };
    const span = tracer.startSpan(`${attributes[genAi.operation]} ${model}`, options, this.#context);
    this.#attempts++;
    this.#firstByteMs = undefined;
    this.#attempt = { span, engine, startedMs, reported: { finishReasons: new Map() } };
    const traceparent = traceparentOf(span.spanContext());
    return tracestate === undefined ? { traceparent } : { traceparent, tracestate };
  }

  attemptFailed(error: unknown): void {
    this.#attempt?.span.setAttribute(errorType, typeOf(error));
    if (!isCancelled(error)) this.#attempt?.span.setStatus({ code: SpanStatusCode.ERROR });
    this.#endAttempt(undefined);
  }

  firstByte(): void {
    if (this.#firstByteMs !== undefined || !this.#request?.stream) return;
    this.#firstByteMs = this.#now();
    const seconds = (this.#firstByteMs - (this.#attempt?.startedMs ?? this.#firstByteMs)) / 1000;
    this.#attempt?.span.setAttribute(genAi.timeToFirstChunk, Math.round(seconds * 1e6) / 1e6);
  }

  firstToken(): void {
    if (!this.#isFirstTokenReported) this.#reportFirstToken(this.#now());
  }

  chunk(chunk: Readonly<Record<string, unknown>>): void {
    if (this.#attempt) this.#dialect?.readReported(this.#attempt.reported, chunk);
  }

  answer(bytes: ByteSpan): void {
    if (!this.#attempt || bytes.length > maxAnswerLength) return;
    const answer = parsed(bytes.text);
    const dialect = this.#dialect;
    dialect?.readReported(this.#attempt.reported, answer);
    if (this.takesContent && dialect?.generates) {
      this.#setOutput(outputMessages(dialect.answered(answer), redactorOf(this.#attempt.engine)));
    }
  }

  delivered(events: string): void {
    if (!this.#dialect) return;
    this.#streamed ??= new StreamedContent(this.#dialect.streamed);
    this.#streamed.add(events);
  }

  calls({ server, method, name }: TracedCall): (errorCode: string | null) => void {
    if (this.#isOver) return () => {};
    const attributes: Attributes = { [mcpMethod]: method, "headrace.tool_server": server };
    if (name !== null) attributes[genAi.toolName] = name;
    const options = { kind: SpanKind.CLIENT, startTime: this.#now(), attributes };
    const title = name === null ? method : `${method} ${name}`;
    const span = this.#options.tracer.startSpan(title, options, this.#context);
    return (errorCode) => {
      if (errorCode !== null) span.setAttribute(errorType, errorCode).setStatus({ code: SpanStatusCode.ERROR });
      span.end(this.#now());
    };
  }

  answered(end: UsageEnd): void {
    this.#span.setAttribute("headrace.outcome", end.outcome);
    if (end.parts?.details?.replayed !== undefined) this.#span.setAttribute("headrace.from_cache", true);
    if (this.#attempts > 0) this.#span.setAttribute("headrace.attempts", this.#attempts);
    // A short stream may arrive with its end before a first token was reported.
    if (end.completionTokens > 0 && this.#firstByteMs !== undefined && !this.#isFirstTokenReported) {
      this.#reportFirstToken(this.#firstByteMs);
    }
    this.#endAttempt(end);
  }

  end(status: number, errorCode: string | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#endAttempt(undefined);
    this.#span.setAttribute("http.response.status_code", status);
    if (errorCode !== undefined) this.#span.setAttribute(errorType, errorCode);
    // A refusal is not a server error. A stream that broke off is an error, although its status was a success.
    if (status >= 500 || (errorCode !== undefined && status < 400)) {
      this.#span.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#span.end(this.#now());
  }

  #attemptAttributes(engine: Engine, model: string, publicModel: string): Attributes {
    const attributes: Attributes = {
      ...(this.#request ? requestAttributes(this.#request) : {}),
      [genAi.provider]: providerOf(engine),
      [genAi.requestModel]: model,
      "headrace.upstream": engine.name,
      "headrace.model": publicModel,
      ...this.#ids,
    };
    if (this.#turnId !== undefined) attributes["headrace.request.id"] = this.#turnId;
    if (engine.server) {
      attributes["server.address"] = engine.server.address;
      attributes["server.port"] = engine.server.port;
    }
    if (this.takesContent && this.#request) {
      const messages = inputMessages(this.#request, redactorOf(engine));
      attributes[genAi.inputMessages] = messages;
      this.#setRootInput(messages);
    }
    return attributes;
  }

  #reportFirstToken(atMs: number): void {
    this.#isFirstTokenReported = true;
    this.#attempt?.span.addEvent("headrace.first_token", undefined, atMs);
  }

  /** Only content that a model server got is set, because a guardrail may have refused or masked what the client sent. */
  #setRootInput(messages: string): void {
    if (this.#hasInput) return;
    this.#hasInput = true;
    this.#span.setAttributes({ [openInference.input]: messages, [openInference.inputType]: jsonType });
  }

  #setOutput(messages: string): void {
    this.#attempt?.span.setAttribute(genAi.outputMessages, messages);
    this.#span.setAttributes({ [openInference.output]: messages, [openInference.outputType]: jsonType });
  }

  /** Ends the span of the current attempt. `end` is the end of the request, if this attempt answered it. */
  #endAttempt(end: UsageEnd | undefined): void {
    const attempt = this.#attempt;
    if (!attempt) return;
    const { span, reported, engine } = attempt;
    // Texts that an engine reports, such as its model's name, may contain anything, so secrets are removed.
    const safe = redactorOf(engine);
    if (this.#streamed) this.#setOutput(this.#streamed.messages(safe));
    this.#streamed = undefined;
    this.#attempt = undefined;
    if (reported.id !== undefined) span.setAttribute(genAi.responseId, safe(reported.id));
    if (reported.model !== undefined) span.setAttribute(genAi.responseModel, safe(reported.model));
    if (reported.finishReasons.size > 0) {
      const reasons = [...reported.finishReasons].sort(([a], [b]) => a - b).map(([, reason]) => safe(reason));
      span.setAttribute(genAi.finishReasons, reasons);
    }
    if (reported.cachedTokens !== undefined) span.setAttribute(genAi.cachedTokens, reported.cachedTokens);
    if (reported.reasoningTokens !== undefined) span.setAttribute(genAi.reasoningTokens, reported.reasoningTokens);
    if (end) setEnd(span, end);
    span.end(this.#now());
  }

  #now(): number {
    return this.#offsetMs + exactMs();
  }
}

function redactorOf(engine: Engine): (text: string) => string {
  return (text) => redactCredentials(engine.redact(text));
}

function setEnd(span: Span, end: UsageEnd): void {
  span.setAttributes({
    [genAi.inputTokens]: end.promptTokens,
    [genAi.outputTokens]: end.completionTokens,
    "headrace.outcome": end.outcome,
  });
  if (end.parts) {
    const { cachedTokens, cacheWriteTokens, reasoningTokens } = end.parts;
    // The recorded tokens replace those that the model server reported for the attempt, because both may differ.
    if (cachedTokens > 0) span.setAttribute(genAi.cachedTokens, cachedTokens);
    if (cacheWriteTokens > 0) span.setAttribute(genAi.cacheWriteTokens, cacheWriteTokens);
    if (reasoningTokens > 0) span.setAttribute(genAi.reasoningTokens, reasoningTokens);
  }
  if (end.estimated) span.setAttribute("headrace.usage.estimated", true);
  if (end.outcome === "completed" && end.errorCode !== null) span.setAttribute("headrace.ended_by", end.errorCode);
  if (end.outcome !== "failed") return;
  span.setAttribute(errorType, end.errorCode ?? "internal_error");
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** Returns the class of an error, never its text, which may repeat the prompt. */
function typeOf(error: unknown): string {
  if (error instanceof GatewayError) return error.code;
  if (isCancelled(error)) return "cancelled";
  return error instanceof Error ? error.name : "unknown";
}

function isCancelled(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
