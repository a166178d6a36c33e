// The port of a request's trace, so that nothing but its adapter knows how traces are kept and sent.

import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { Engine } from "../models/engine.ts";
import type { Operation } from "../models/operation.ts";
import type { TraceHeaders } from "./trace-headers.ts";
import type { UsageEnd } from "./usage.ts";

/** A request that is authenticated: what comes before is not traced, as anybody could ask for it. */
export interface TracedExchange {
  readonly requestId: string;
  readonly method: string;
  /** The route's pattern. */
  readonly route: string;
  /** Id of the key, as in the log. */
  readonly keyId: string;
  /** Milliseconds since it came. */
  readonly ageMs: number;
  /** Headers of the client, as it sent them. */
  readonly headers: { get(name: string): string | null };
}

/** The request as it is put to a model. */
export interface TracedRequest {
  readonly operation: Operation;
  /** Public id. */
  readonly model: string;
  readonly stream: boolean;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A tool as it is called at its server. */
export interface TracedCall {
  readonly server: string;
  readonly method: string;
  /** The server's own name of the tool or prompt; null: it has none, or none to be told. */
  readonly name: string | null;
}

export interface Tracer {
  /** Undefined where the request is not traced, as most are not. */
  begin(exchange: TracedExchange): RequestTrace | undefined;
}

/**
 * One request that is traced. None of its methods throws, or takes longer than the notes it makes; what is called out of
 * turn does nothing.
 */
export interface RequestTrace {
  /** The id for the log: 32 hex digits. */
  readonly id: string;
  /** Whether `delivered` is to be called: prompts and answers are part of traces only where the operator wants that. */
  readonly takesContent: boolean;
  /** Also for each later turn of a response whose tools are run here, with the id by which the ledger has that. */
  asked(request: TracedRequest, turnId?: string): void;
  /** It waits; what is returned is called when it goes on. */
  waits(what: "admission" | "queue"): () => void;
  /** An engine is asked. `model` is its own id, `publicModel` ours. What is returned goes along with the request. */
  attempt(engine: Engine, model: string, publicModel: string): TraceHeaders;
  /** The engine that was asked last failed, or refused. */
  attemptFailed(error: unknown): void;
  /** The engine's answer begins; may be called again. */
  firstByte(): void;
  /** The first of the answer's text goes to the client; may be called again. */
  firstToken(): void;
  /** A chunk of a stream as its engine sent it, parsed; not all of them, but the first and the last among those. */
  chunk(chunk: Readonly<Record<string, unknown>>): void;
  /** A whole answer as its engine sent it: JSON as UTF-8. */
  answer(bytes: ByteSpan): void;
  /** Events of a stream, as they go to the client. */
  delivered(events: string): void;
  /** An MCP server is asked; what is returned is called with the code of the error that ended it, where one did. */
  calls(call: TracedCall): (errorCode: string | null) => void;
  /** Tells how the inference request ended. */
  answered(end: UsageEnd): void;
  /** The exchange is over. `errorCode`: of ours, where it failed. */
  end(status: number, errorCode: string | undefined): void;
}
