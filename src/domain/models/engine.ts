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
  /** Sent along, so that the engine's log can be matched with the gateway's. */
  requestId: string;
  operation: Operation;
  /** The engine's own id of the model. */
  model: string;
  /** JSON text with the engine's `model`, or the same as UTF-8. */
  body: string | Bytes;
  /** Sent instead of the body, which is then empty. */
  form?: SentForm;
  /** Whether the body asks for Server-Sent Events. */
  stream: boolean;
  /** True if the answer is not JSON, such as audio. Default: false. */
  takesBytes?: boolean;
  /** Number of parallel generations (`n`, or one per prompt); at least 1. */
  width: number;
  /** The memory account for parts of the answer that are not read yet. */
  memoryAccount: MemoryAccount;
  /** The priority in a queue of the engine's own. Default: normal. */
  priority?: Priority | undefined;
  /** Sent along if the request is traced. */
  trace?: TraceHeaders;
  /** Sent along with the body of a Messages client. Missing for bodies of the gateway or in another format. */
  messageHeaders?: MessageHeaders | undefined;
}

/** A request whose prompt is to be counted, as it would be sent. */
export interface CountRequest
  extends Pick<EngineRequest, "requestId" | "model" | "body" | "memoryAccount" | "messageHeaders"> {
  operation: ConversationOperation;
}

/** Status and body as the engine sent them. The body can be read once; cancelling it stops the work. */
export interface EngineResponse {
  status: number;
  headers: { get(name: string): string | null };
  /** Fails with `upstream_timeout` when the engine is silent for too long. */
  body: BodySource;
}

/** A model as an engine reports it. */
export interface EngineModel {
  /** The engine's own id, sent back to it as `model`. */
  id: string;
  ownedBy?: string;
  /** Unix seconds. */
  created?: number;
  /** Missing if the engine does not report them. */
  capabilities?: Capabilities;
  /** Tokens. */
  context?: number;
  /** Environments whose keys may use it. Default: those of its source. */
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
  /** Requests that it runs, and that wait in its own queue. */
  running: number;
  waiting: number;
  /** Share of the prompt cache in use, 0 to 1; null if not reported. */
  cacheUse: number | null;
  /** Share of prompt tokens found in the cache since the server's start; null if not reported. */
  cacheHits: number | null;
}

/** The server of an engine that starts on demand ended before it got the request, which may wait for the next start. */
export class NotRunningError extends GatewayError {}

/**
 * How an engine supports conversation formats itself. `whole`: all features of the vendor's API; `functions`: common
 * features, with function tools only; missing: not at all.
 */
export type EngineFormats = Readonly<Partial<Record<ConversationOperation, "whole" | "functions">>>;

/** An engine whose server starts on demand, as the capacity gate sees it. */
export interface OnDemand {
  /** True if requests may get slots. While false, they wait as if all slots were taken. */
  readonly open: boolean;
  /** Called after each change, with the used slots and the waiting requests. */
  demand(inFlight: number, waiting: number): void;
}

/** How an engine continues an answer: if the last message is the assistant's, or with vLLM's and SGLang's flag. */
export const chatContinuations = ["last_message", "flag"] as const;
export type ChatContinuation = (typeof chatContinuations)[number];

/** Returns the name of the engine for one program and one model file. */
export function fileEngineName(program: string, model: string): string {
  return `${program}-${model}`;
}

export interface Engine {
  /** Name for logs and for a model's deployments, e.g. `ollama` or `built-in`. */
  readonly name: string;
  /** The address of its HTTP API. Missing for engines without one. */
  readonly server?: { readonly address: string; readonly port: number } | undefined;
  /** Maximum concurrent requests, if the operator set it. */
  readonly maxConcurrency?: number | undefined;
  /** Present for an engine whose server starts on demand. */
  readonly onDemand?: OnDemand;
  /** The same for one model, for engines that load each model separately. */
  onDemandFor?(model: string, operation: Operation): OnDemand | undefined;
  /** Returns the state of a model's process, if it starts on demand. Undefined: always running. */
  processState?(model: string): ModelProcessState | undefined;
  /** False if forms with files cannot be sent to it. */
  readonly takesForms?: boolean;
  /** Separation of accounts. Missing: it gets what clients sent. */
  readonly isolation?: Isolation | undefined;
  /** The formats that it currently supports. Missing or undefined: chat completions only. */
  readonly formats?: EngineFormats | undefined;
  /** Returns how it continues an answer of this model. Missing or undefined: it cannot. */
  continues?(model: string): ChatContinuation | undefined;
  /**
   * Returns the number of generations, or embedding requests, that it runs at once for one model. A request counts as
   * many as its width. Missing or undefined: unknown, so the number is measured.
   */
  concurrency?(model: string, operation: Operation): number | undefined;
  /**
   * Sends one request. Rejects with a GatewayError (`upstream_error`, `upstream_timeout`, `service_unavailable`) if no
   * response began, or with the reason of `cancellation` if that came first. Cancelling stops the work until the
   * response is here; then cancel its body.
   */
  send(request: EngineRequest, cancellation: Cancellation): MaybePromise<EngineResponse>;
  /**
   * Opens a connection for OpenAI's realtime events, one text message each. Missing: not supported. Rejects with a
   * GatewayError. Calls `listen` before it reads anything.
   */
  connectRealtime?(
    request: RealtimeRequest,
    listen: (link: PausableLink) => MessageLinkListener,
  ): Promise<PausableLink>;
  /** Lists the models that it serves now. Rejects if it cannot be reached. */
  models(signal: AbortSignal): Promise<EngineModel[]>;
  /**
   * Models to offer while it cannot be reached, for engines that remember their last list, also of an earlier process.
   */
  lastModels?(): EngineModel[];
  /** False while it accepts nothing new, because it is not connected or drained. Only for engines that know. */
  readonly accepts?: boolean;
  /**
   * Counts the tokens of a request's prompt without running it. Undefined if it cannot. Rejects if it could not be
   * asked.
   */
  countTokens?(request: CountRequest, cancellation: Cancellation): Promise<number | undefined>;
  /** Returns the reported load. Undefined if it never reports one. Rejects if it could not be asked. */
  load?(signal: AbortSignal): Promise<EngineLoad | undefined>;
  /** Removes the gateway's own credentials from a text of the engine. */
  redact(text: string): string;
}
