// The port for traces of requests. How traces are stored and sent is up to its implementation.

import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { Engine } from "../models/engine.ts";
import type { Operation } from "../models/operation.ts";
import type { TraceHeaders } from "./trace-headers.ts";
import type { UsageEnd } from "./usage.ts";

/**
 * An authenticated request. Requests are traced only after authentication, because otherwise anybody could cause
 * traces.
 */
export interface TracedExchange {
  readonly requestId: string;
  readonly method: string;
  /** The route's pattern. */
  readonly route: string;
  /** Id of the key, equal to the id in the log. */
  readonly keyId: string;
  /** Id of the person, app or key that sent the request. */
  readonly actorId: string;
  /** Milliseconds since the request arrived at the server. */
  readonly ageMs: number;
  /** The client's headers, unchanged. */
  readonly headers: { get(name: string): string | null };
}

/** The request as it is sent to a model. */
export interface TracedRequest {
  readonly operation: Operation;
  /** Public id. */
  readonly model: string;
  readonly stream: boolean;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A tool call as it is sent to its server. */
export interface TracedCall {
  readonly server: string;
  readonly method: string;
  /** The name of the tool or prompt at its server. Null if there is no name, or the name must not be traced. */
  readonly name: string | null;
}

export interface Tracer {
  /** Begins a trace. Returns undefined if the request is not traced, which is usual. */
  begin(exchange: TracedExchange): RequestTrace | undefined;
}

/** The trace of one request. Its methods are fast and never throw. They do nothing if they are called out of order. */
export interface RequestTrace {
  /** The trace id for the log: 32 hex digits. */
  readonly id: string;
  /** True if `delivered` must be called, because the operator wants prompts and answers in traces. */
  readonly takesContent: boolean;
  /**
   * Records a request to a model. If the gateway runs a response's tools, it calls the model again. Then `turnId` is
   * the id of that call in the ledger.
   */
  asked(request: TracedRequest, turnId?: string): void;
  /** Begins a wait. Call the returned function when the wait ends. */
  waits(what: "admission" | "queue"): () => void;
  /**
   * Begins an attempt at an engine. `model` is the model's id at the engine. Returns trace headers for the request to
   * the engine.
   */
  attempt(engine: Engine, model: string, publicModel: string): TraceHeaders;
  /** Ends the last attempt, because the engine failed or refused the request. */
  attemptFailed(error: unknown): void;
  /** Records when the engine's answer began. May be called more than once. */
  firstByte(): void;
  /** Records when the first text was sent to the client. May be called more than once. */
  firstToken(): void;
  /**
   * Records a parsed chunk of a stream, as the engine sent it. Must be called at least for the first and the last
   * chunk.
   */
  chunk(chunk: Readonly<Record<string, unknown>>): void;
  /** Records a complete answer as the engine sent it: JSON as UTF-8. */
  answer(bytes: ByteSpan): void;
  /** Records events of a stream as they are sent to the client. */
  delivered(events: string): void;
  /**
   * Begins a call of an MCP server. Call the returned function when the call ends, with the code of its error or null.
   */
  calls(call: TracedCall): (errorCode: string | null) => void;
  /** Reports how the inference request ended. */
  answered(end: UsageEnd): void;
  /** Ends the trace. `errorCode` is the gateway's error code, if the request failed. */
  end(status: number, errorCode: string | undefined): void;
}
