// The port of all engines: an engine answers an OpenAI-shaped HTTP request.

import type { BodySource } from "../../base/bytes/body-source.ts";
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Bytes } from "../../base/bytes/byte-span.ts";
import type { MessageLinkListener, PausableLink } from "../../base/bytes/message-link.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Environment } from "../api-key.ts";
import type { TraceHeaders } from "../usage/trace-headers.ts";
import type { Capabilities } from "./capabilities.ts";
import type { Isolation } from "./isolation.ts";
import type { MessageHeaders } from "./message-headers.ts";
import type { ModelProcessState } from "./model-process-state.ts";
import type { ConversationOperation, Operation } from "./operation.ts";
import type { Priority } from "./policies/priority.ts";
import type { SentForm } from "./sent-form.ts";

/** Name of the built-in engine among the upstreams. */
export const builtInEngineName = "built-in";

export interface EngineRequest {
  /** The id of the request, which the engine gets too, so that its log can be matched with the gateway's. */
  requestId: string;
  operation: Operation;
  /** The engine's own id of the model. */
  model: string;
  /** JSON text with the engine's `model`, or the same as UTF-8. */
  body: string | Bytes;
  /** A form that is sent instead of the body, which is then empty. */
  form?: SentForm;
  /** True if the body asks for Server-Sent Events. */
  stream: boolean;
  /** True if the answer is not JSON, such as audio. Default: false. */
  takesBytes?: boolean;
  /** Number of parallel generations (`n`, or one per prompt); at least 1. */
  width: number;
  /** The memory account for parts of the answer that are not read yet. */
  memoryAccount: MemoryAccount;
  /** The priority, for engines whose own queue supports it. Default: normal. */
  priority?: Priority | undefined;
  /** Sent along if the request is traced. */
  trace?: TraceHeaders;
  /**
   * Headers that a Messages client sent with the body. Missing if the gateway wrote the body or it has another format.
   */
  messageHeaders?: MessageHeaders | undefined;
}

/** A request whose prompt is to be counted, in the form in which it would be sent. */
export interface CountRequest
  extends Pick<EngineRequest, "requestId" | "model" | "body" | "memoryAccount" | "messageHeaders"> {
  operation: ConversationOperation;
}

/** Status and body as the engine sent them. The body can be read once; cancelling it stops the work. */
export interface EngineResponse {
  status: number;
  headers: { get(name: string): string | null };
  /** The body fails with `upstream_timeout` if the engine is silent for too long in the middle of the answer. */
  body: BodySource;
}

/** A model as an engine reports it. */
export interface EngineModel {
  /** The engine's own id of the model, which requests to the engine have as `model`. */
  id: string;
  ownedBy?: string;
  /** Unix seconds. */
  created?: number;
  /** Capabilities of the model. Missing if the engine does not report any. */
  capabilities?: Capabilities;
  /** Tokens. */
  context?: number;
  /** Environments whose keys may use the model. Default: those of the model's upstream. */
  environments?: readonly Environment[];
}

/** A realtime conversation. */
export interface RealtimeRequest {
  requestId: string;
  /** The engine's own id of the model. */
  model: string;
  /** Maximum bytes of one received message. */
  maxMessageBytes: number;
  /** Sent along if the request is traced. */
  trace?: TraceHeaders | undefined;
}

/** The load that a server reports, including requests of other clients. */
export interface EngineLoad {
  /** `running`: requests that the server works on; `waiting`: requests in the server's own queue. */
  running: number;
  waiting: number;
  /** Share of the server's memory for prompts (KV cache) in use, 0 to 1; null if not reported. */
  cacheUse: number | null;
  /** Share of all prompt tokens since the server's start that it found in that cache, 0 to 1; null if not reported. */
  cacheHits: number | null;
}

/** Thrown if an on-demand engine's server ended before it got the request. The request may wait for the next start. */
export class NotRunningError extends GatewayError {}

/**
 * The conversation formats that an engine supports itself. `whole`: all features of the vendor's API; `functions`:
 * common features, with function tools only; missing: not supported.
 */
export type EngineFormats = Readonly<Partial<Record<ConversationOperation, "whole" | "functions">>>;

/** An engine whose server starts on demand, as the capacity gate sees it. */
export interface OnDemand {
  /** True if requests may get slots. While false, they wait as if all slots were taken. */
  readonly open: boolean;
  /** Called after each change, with the used slots and the waiting requests. */
  demand(inFlight: number, waiting: number): void;
}

/**
 * The ways in which an engine continues an answer that was begun. `last_message`: whenever the last message is the
 * assistant's; `flag`: only if the request has the members that vLLM and SGLang define for this.
 */
export const chatContinuations = ["last_message", "flag"] as const;
export type ChatContinuation = (typeof chatContinuations)[number];

/** Returns the name of the engine for one program and one model file. */
export function fileEngineName(program: string, model: string): string {
  return `${program}-${model}`;
}

export interface Engine {
  /** Name for logs and for a model's deployments, e.g. `ollama` or `built-in`. */
  readonly name: string;
  /** The address of the engine's HTTP API. Missing for engines without an HTTP API. */
  readonly server?: { readonly address: string; readonly port: number } | undefined;
  /** Maximum number of concurrent requests. Missing if the operator did not set it. */
  readonly maxConcurrency?: number | undefined;
  /** Present for an engine whose server starts on demand. */
  readonly onDemand?: OnDemand;
  /** Returns `onDemand` of one model, for engines that load each model separately. */
  onDemandFor?(model: string, operation: Operation): OnDemand | undefined;
  /** Returns the state of a model's process. Undefined: the model has no process that starts on demand. */
  processState?(model: string): ModelProcessState | undefined;
  /** False if forms with files cannot be sent to the engine. */
  readonly takesForms?: boolean;
  /**
   * The rules that keep requests of several accounts apart at the engine. Missing: the engine gets the members that
   * clients sent.
   */
  readonly isolation?: Isolation | undefined;
  /** The formats that the engine currently supports. Missing or undefined: chat completions only. */
  readonly formats?: EngineFormats | undefined;
  /** Returns how the engine continues an answer of this model. Missing or undefined: not known to continue answers. */
  continues?(model: string): ChatContinuation | undefined;
  /**
   * Returns the number of generations, or embedding requests, that the engine runs at once for one model. A request
   * counts as many as its width. Missing or undefined: unknown, so the number is measured.
   */
  concurrency?(model: string, operation: Operation): number | undefined;
  /**
   * Sends one request. Rejects with a GatewayError (`upstream_error`, `upstream_timeout`, `service_unavailable`) if no
   * response began, or with the reason of `cancellation` if that came first. Cancelling stops the work until the
   * response begins; after that, cancel the response's body.
   */
  send(request: EngineRequest, cancellation: Cancellation): MaybePromise<EngineResponse>;
  /**
   * Opens a connection for OpenAI's realtime events, one text message each. Missing: not supported. Rejects with a
   * GatewayError if the connection fails. Calls `listen` before it reads anything from the connection.
   */
  connectRealtime?(
    request: RealtimeRequest,
    listen: (link: PausableLink) => MessageLinkListener,
  ): Promise<PausableLink>;
  /** Lists the models that the engine serves now. Rejects if the engine cannot be reached. */
  models(signal: AbortSignal): Promise<EngineModel[]>;
  /**
   * Returns the models to offer while the engine cannot be reached. Only engines that remember their last list, also of
   * an earlier process, have the method.
   */
  lastModels?(): EngineModel[];
  /**
   * False while the engine accepts no new requests, because it is not connected or is draining. Only engines that know
   * this have the member.
   */
  readonly accepts?: boolean;
  /**
   * Counts the tokens of a request's prompt without running the request. Returns undefined if the engine cannot count
   * them. Rejects if the engine cannot be reached.
   */
  countTokens?(request: CountRequest, cancellation: Cancellation): Promise<number | undefined>;
  /**
   * Returns the load that the engine reports, or undefined if it never reports one. Rejects if the engine cannot be
   * reached.
   */
  load?(signal: AbortSignal): Promise<EngineLoad | undefined>;
  /** Removes the gateway's credentials for the engine from a text that the engine sent. */
  redact(text: string): string;
}
