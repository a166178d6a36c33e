// The port of a request's trace. Only its adapter knows how traces are stored and sent.

import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { Engine } from "../models/engine.ts";
import type { Operation } from "../models/operation.ts";
import type { TraceHeaders } from "./trace-headers.ts";
import type { UsageEnd } from "./usage.ts";

/** An authenticated request. Earlier stages are not traced, because anybody could cause traces. */
export interface TracedExchange {
  readonly requestId: string;
  readonly method: string;
  /** The route's pattern. */
  readonly route: string;
  /** Id of the key, as in the log. */
  readonly keyId: string;
  /** Milliseconds since the request arrived. */
  readonly ageMs: number;
  /** Headers of the client, unchanged. */
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
  /** The server's own name of the tool or prompt; null if it has none, or none that may be traced. */
  readonly name: string | null;
}

export interface Tracer {
  /** Returns undefined for an untraced request, as most are. */
  begin(exchange: TracedExchange): RequestTrace | undefined;
}

/**
 * A traced request. Its methods never throw, take no longer than a note needs, and do nothing if they are called out of
 * order.
 */
export interface RequestTrace {
  /** The id for the log: 32 hex digits. */
  readonly id: string;
  /** True if `delivered` is to be called: the operator wants prompts and answers in traces. */
  readonly takesContent: boolean;
  /**
   * Takes the request to a model. Called again for each later model call of a response whose tools the gateway runs,
   * with `turnId`, that call's id in the ledger.
   */
  asked(request: TracedRequest, turnId?: string): void;
  /** Begins a wait. The returned function ends it. */
  waits(what: "admission" | "queue"): () => void;
  /**
   * Begins an attempt. `model` is the engine's own id, `publicModel` the public one. Returns headers for the request.
   */
  attempt(engine: Engine, model: string, publicModel: string): TraceHeaders;
  /** Ends the last attempt with a failure or refusal. */
  attemptFailed(error: unknown): void;
  /** Marks the begin of the engine's answer; may be called again. */
  firstByte(): void;
  /** Marks the first text that goes to the client; may be called again. */
  firstToken(): void;
  /** Takes a parsed chunk of a stream as its engine sent it: at least the first and the last. */
  chunk(chunk: Readonly<Record<string, unknown>>): void;
  /** Takes a whole answer as its engine sent it: JSON as UTF-8. */
  answer(bytes: ByteSpan): void;
  /** Takes events of a stream as they go to the client. */
  delivered(events: string): void;
  /**
   * Begins a call of an MCP server. The returned function ends it, with the code of the error that ended the call, or
   * null.
   */
  calls(call: TracedCall): (errorCode: string | null) => void;
  /** Reports how the inference request ended. */
  answered(end: UsageEnd): void;
  /** Ends the exchange. `errorCode` is the gateway's own code of a failure. */
  end(status: number, errorCode: string | undefined): void;
}
