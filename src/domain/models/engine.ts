// The interface of all engines. An engine answers HTTP requests in OpenAI's format.

import type { BodySource } from "../../base/bytes/body-source.ts";
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Bytes } from "../../base/bytes/byte-span.ts";
import type { MessageLinkListener, PausableLink } from "../../base/bytes/message-link.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import { GatewayError, type GatewayErrorOptions } from "../../base/errors.ts";
import type { Environment } from "../api-key.ts";
import type { AttemptCause } from "../usage/attempt-health.ts";
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
  /** The id of the request. The engine gets the id too, so that its log can be matched with the gateway's log. */
  requestId: string;
  operation: Operation;
  /** The model's id at the engine, which may differ from its public id. */
  model: string;
  /** The request body with the engine's own model id: JSON as a text or as UTF-8 bytes. */
  body: string | Bytes;
  /** A multipart form to send. `body` is then empty. */
  form?: SentForm;
  /** True if the body requests Server-Sent Events. */
  stream: boolean;
  /** True if the answer is not JSON, such as audio. Default: false. */
  takesBytes?: boolean;
  /** Number of answers that are generated in parallel (`n`, or one for each prompt). At least 1. */
  width: number;
  /** The memory account that counts unread parts of the answer. */
  memoryAccount: MemoryAccount;
  /** The request's priority, for engines that have their own queue by priority. Default: normal. */
  priority?: Priority | undefined;
  /** Trace headers to send. Missing if the request is not traced. */
  trace?: TraceHeaders;
  /**
   * Headers of a client of the Messages API, which belong to its body. Missing if the gateway wrote the body, or for
   * other formats.
   */
  messageHeaders?: MessageHeaders | undefined;
}

/** A request whose prompt tokens are to be counted. The body is the one that would be sent. */
export interface CountRequest
  extends Pick<EngineRequest, "requestId" | "model" | "body" | "memoryAccount" | "messageHeaders"> {
  operation: ConversationOperation;
}

/** The engine's response. Its body can be read only once. Cancelling the body stops the engine's work. */
export interface EngineResponse {
  status: number;
  headers: { get(name: string): string | null };
  /** The response body. It fails with `upstream_timeout` if the engine sends nothing for too long. */
  body: BodySource;
}

/** A model as an engine reports it. */
export interface EngineModel {
  /** The model's id at the engine, which requests to the engine contain as `model`. */
  id: string;
  ownedBy?: string;
  /** Unix seconds. */
  created?: number;
  /** Capabilities of the model. Missing if the engine does not report any. */
  capabilities?: Capabilities;
  /** Tokens. */
  context?: number;
  /** Unix seconds of the announced end of the model at this engine. Missing if none was announced. */
  shutdownAt?: number;
  /** Environments whose keys may use the model. Default: the environments of its upstream. */
  environments?: readonly Environment[];
}

/** A realtime conversation. */
export interface RealtimeRequest {
  requestId: string;
  /** The model's id at the engine. */
  model: string;
  /** Maximum bytes of one message from the engine. */
  maxMessageBytes: number;
  /** Trace headers to send. Undefined if the request is not traced. */
  trace?: TraceHeaders | undefined;
}

/** The load that a server reports, including requests of other clients. */
export interface EngineLoad {
  /** `running`: requests that the server works on. `waiting`: requests in the server's own queue. */
  running: number;
  waiting: number;
  /** Used share of the server's KV cache, 0 to 1. Null if the server does not report it. */
  cacheUse: number | null;
  /**
   * Share of all prompt tokens that the KV cache already had, since the server's start, 0 to 1. Null if not reported.
   */
  cacheHits: number | null;
}

/**
 * Thrown if a server that starts on demand ended before the request reached it. The request may then wait for the next
 * start.
 */
export class NotRunningError extends GatewayError {}

/** A failure of a model server whose cause its HTTP status does not show. */
export class EngineFault extends GatewayError {
  readonly attemptCause: AttemptCause;

  constructor(attemptCause: AttemptCause, message: string, options?: GatewayErrorOptions) {
    super("upstream_error", message, options);
    this.attemptCause = attemptCause;
  }
}

/**
 * The conversation formats that an engine supports without translation. `whole`: all features of the vendor's API.
 * `functions`: the common features, with function tools only. A missing format is not supported.
 */
export type EngineFormats = Readonly<Partial<Record<ConversationOperation, "whole" | "functions">>>;

/** An engine whose server starts on demand. The capacity gate uses this interface. */
export interface OnDemand {
  /** True if requests may get slots. While false, requests wait as if no slot were free. */
  readonly open: boolean;
  /** Called after each change of the number of used slots or waiting requests. */
  demand(inFlight: number, waiting: number): void;
}

/**
 * Describes how an engine can be told to continue an unfinished answer. `last_message`: the request ends with the
 * assistant's message. `flag`: the request also needs the members that vLLM and SGLang define for this.
 */
export const chatContinuations = ["last_message", "flag"] as const;
export type ChatContinuation = (typeof chatContinuations)[number];

/** Returns the engine's name for a program and a model file. */
export function fileEngineName(program: string, model: string): string {
  return `${program}-${model}`;
}

export interface Engine {
  /** The engine's name in logs and in models' deployments, such as `ollama` or `built-in`. */
  readonly name: string;
  /** Host and port of the engine's HTTP API. Missing if the engine has none. */
  readonly server?: { readonly address: string; readonly port: number } | undefined;
  /** Maximum number of concurrent requests. Missing if the operator did not set it. */
  readonly maxConcurrency?: number | undefined;
  /** Present if the engine's server starts on demand. */
  readonly onDemand?: OnDemand;
  /** Returns `onDemand` for one model. Only engines that load each model separately have this method. */
  onDemandFor?(model: string, operation: Operation): OnDemand | undefined;
  /** Returns the state of a model's process. Undefined if the model has no process that starts on demand. */
  processState?(model: string): ModelProcessState | undefined;
  /** False if the engine accepts no forms with files. */
  readonly takesForms?: boolean;
  /**
   * Describes how requests of several accounts are kept apart at the engine. If missing, the engine gets what the
   * clients sent.
   */
  readonly isolation?: Isolation | undefined;
  /** The conversation formats that the engine supports now. If missing or undefined, only chat completions. */
  readonly formats?: EngineFormats | undefined;
  /**
   * Returns how the engine can continue an unfinished answer of this model. Undefined if it is not known to continue
   * answers.
   */
  continues?(model: string): ChatContinuation | undefined;
  /**
   * Returns how many answers, or embedding requests, the engine runs at once for one model. A request counts as many as
   * its `width`. If missing or undefined, the gateway measures the number.
   */
  concurrency?(model: string, operation: Operation): number | undefined;
  /**
   * Sends one request. If no response begins, rejects with a GatewayError (`upstream_error`, `upstream_timeout`,
   * `service_unavailable`), or with the reason of `cancellation`. `cancellation` stops the work until the response
   * begins. After that, cancel the response's body.
   */
  send(request: EngineRequest, cancellation: Cancellation): MaybePromise<EngineResponse>;
  /**
   * Opens a connection for OpenAI's realtime events, one text message for each event. Missing if not supported. Rejects
   * with a GatewayError if the connection fails. Calls `listen` before it reads from the connection.
   */
  connectRealtime?(
    request: RealtimeRequest,
    listen: (link: PausableLink) => MessageLinkListener,
  ): Promise<PausableLink>;
  /** Lists the models that the engine serves now. Rejects if the engine cannot be reached. */
  models(signal: AbortSignal): Promise<EngineModel[]>;
  /**
   * Returns the models to offer while the engine cannot be reached. Only engines that remember their last list have
   * this method.
   */
  lastModels?(): EngineModel[];
  /**
   * False while the engine takes no new requests, because it is not connected or is draining. Missing if the engine
   * does not know this.
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
