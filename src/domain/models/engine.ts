// The port behind which every model runs: an engine is anything that answers an OpenAI-shaped HTTP request.

import type { BodySource } from "../../base/bytes/body-source.ts";
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Bytes } from "../../base/bytes/byte-span.ts";
import type { MessageLinkListener, PausableLink } from "../../base/bytes/message-link.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import type { Environment } from "../api-key.ts";
import type { TraceHeaders } from "../usage/trace-headers.ts";
import type { Capabilities } from "./capabilities.ts";
import type { Isolation } from "./isolation.ts";
import type { MessageHeaders } from "./message-headers.ts";
import type { ModelProcessState } from "./model-process-state.ts";
import type { ConversationOperation, Operation } from "./operation.ts";
import type { Priority } from "./policies/priority.ts";
import type { SentForm } from "./sent-form.ts";

/** Name under which the built-in engine stands among the upstreams. */
export const builtInEngineName = "built-in";

export interface EngineRequest {
  /** Sent along, so that the engine's log can be matched with ours. */
  requestId: string;
  operation: Operation;
  /** The engine's own id of the model. */
  model: string;
  /** JSON text, with that id as its `model`, or the same as UTF-8. */
  body: string | Bytes;
  /** Sent in place of the body, which is empty then. */
  form?: SentForm;
  /** Whether the body asks for Server-Sent Events. */
  stream: boolean;
  /** Whether it asks for what is no JSON, such as sound; left out: it does not. */
  takesBytes?: boolean;
  /** How many generations run side by side for it (`n`, or one per prompt); at least 1. */
  width: number;
  /** The memoryAccount of what came of the answer and is not taken. */
  memoryAccount: MemoryAccount;
  /** For what has a queue of its own behind it that knows it; left out: the usual one. */
  priority?: Priority | undefined;
  /** Sent along, where the request is traced. */
  trace?: TraceHeaders;
  /** Sent along with the body of a client of Messages; left out: the body is ours, or in another format. */
  messageHeaders?: MessageHeaders | undefined;
}

/** A request whose prompt is to be counted, as it would be sent to be answered. */
export interface CountRequest
  extends Pick<EngineRequest, "requestId" | "model" | "body" | "memoryAccount" | "messageHeaders"> {
  operation: ConversationOperation;
}

/** Status and body as the engine sent them; the body flows once, and cancelling it stops the work. */
export interface EngineResponse {
  status: number;
  headers: { get(name: string): string | null };
  /** Fails with `upstream_timeout` when the engine is silent for too long in the middle of it. */
  body: BodySource;
}

/** A model as an engine reports it. */
export interface EngineModel {
  /** The engine's own id, sent back to it as `model`. */
  id: string;
  ownedBy?: string;
  /** Unix seconds. */
  created?: number;
  /** Left out where the engine does not say. */
  capabilities?: Capabilities;
  /** Tokens. */
  context?: number;
  /** Environments whose keys may use it; left out: those of its source. */
  environments?: readonly Environment[];
}

/** A conversation that is to be had as it is spoken. */
export interface RealtimeRequest {
  requestId: string;
  /** The engine's own id of the model. */
  model: string;
  /** The most bytes of one message that comes. */
  maxMessageBytes: number;
  /** Sent along, where the request is traced. */
  trace?: TraceHeaders | undefined;
}

/** The load of a server by its own account, its requests from elsewhere included. */
export interface EngineLoad {
  /** Requests that it works on, and that wait inside of it. */
  running: number;
  waiting: number;
  /** Part of its memory for prompts that is taken, 0 to 1; null where it does not say. */
  cacheUse: number | null;
  /** Part of the prompt tokens that it found there, of all since its start; null where it does not say. */
  cacheHits: number | null;
}

/**
 * How an engine speaks a format of conversations by itself. `whole`: all that its maker's own API takes; `functions`:
 * what most servers know of it, whose only tools are functions; left out: not at all.
 */
export type EngineFormats = Readonly<Partial<Record<ConversationOperation, "whole" | "functions">>>;

/** An engine whose server is started for requests, and stopped for others, as whoever gives places sees it. */
export interface OnDemand {
  /** Whether requests may be given places. While it is false they wait, as for a place that somebody else has. */
  readonly open: boolean;
  /** Called after each change, with the places that are taken and the requests that wait for one. */
  demand(inFlight: number, waiting: number): void;
}

/**
 * How a chat is answered on from an answer that was begun: by itself where its last message is the assistant's, or where the
 * members say so that vLLM and SGLang have for it.
 */
export const chatContinuations = ["last_message", "flag"] as const;
export type ChatContinuation = (typeof chatContinuations)[number];

/** The name of the engine that is one program with one model file. */
export function fileEngineName(program: string, model: string): string {
  return `${program}-${model}`;
}

export interface Engine {
  /** Name for logs and for a model's deployments, e.g. `ollama` or `built-in`. */
  readonly name: string;
  /** The address of its HTTP API; left out for what is asked over no address. */
  readonly server?: { readonly address: string; readonly port: number } | undefined;
  /** Most requests at once, where the operator set it. */
  readonly maxConcurrency?: number | undefined;
  /** For an engine whose server is started for requests; left out: it is there, or is not, by itself. */
  readonly onDemand?: OnDemand;
  /** The same of one of its models, for engines that load each by itself. */
  onDemandFor?(model: string, operation: Operation): OnDemand | undefined;
  /** The state of the process that serves a model, where that is started for requests; undefined: it is just there. */
  processState?(model: string): ModelProcessState | undefined;
  /** False where forms with files cannot be sent to it. */
  readonly takesForms?: boolean;
  /** How requests of several accounts are kept apart there; left out: it gets what clients sent. */
  readonly isolation?: Isolation | undefined;
  /** What it is known to speak now. Left out, or undefined: chat completions alone. */
  readonly formats?: EngineFormats | undefined;
  /** How it goes on with an answer of this model that was begun. Left out, or undefined: nobody knows that it can. */
  continues?(model: string): ChatContinuation | undefined;
  /**
   * The number of generations, or embedding requests, that it works on at once for one model, for engines that know it;
   * a request counts as many as its width. Left out, or undefined: unknown, so that it is measured.
   */
  concurrency?(model: string, operation: Operation): number | undefined;
  /**
   * Sends one request. Rejects with a GatewayError (`upstream_error`, `upstream_timeout`, `service_unavailable`)
   * when no response began, with the reason of `cancellation` where that came first. Cancelling stops the work until the
   * response is here; from then on its body is cancelled.
   */
  send(request: EngineRequest, cancellation: Cancellation): MaybePromise<EngineResponse>;
  /**
   * Opens a connection for OpenAI's realtime events, a text message each; left out: it has none. Rejects with a GatewayError
   * where none came about. `listen` is called before anything of it is read.
   */
  connectRealtime?(
    request: RealtimeRequest,
    listen: (link: PausableLink) => MessageLinkListener,
  ): Promise<PausableLink>;
  /** Lists what it serves now. Rejects when it cannot be reached. */
  models(signal: AbortSignal): Promise<EngineModel[]>;
  /**
   * Models on offer while they cannot be reached, for engines that know what they listed before, also in an earlier
   * process.
   */
  lastModels?(): EngineModel[];
  /** False while it takes nothing new, as it is not connected or about to leave; for engines that know it. */
  readonly accepts?: boolean;
  /**
   * How many tokens the prompt of a request has, without running it; undefined where it cannot tell. For engines that may
   * know. Rejects where it could not be asked.
   */
  countTokens?(request: CountRequest, cancellation: Cancellation): Promise<number | undefined>;
  /** The load by its own account; undefined where it will never tell. Rejects where it could not be asked. */
  load?(signal: AbortSignal): Promise<EngineLoad | undefined>;
  /** Text that the engine sent, without the gateway's own credentials for it. */
  redact(text: string): string;
}
