// The way of an inference request: authorize, admit, route, send, relay, settle.
import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors.ts";
import type { LimitStatus } from "../domain/limits.ts";
import type { Model } from "../domain/model.ts";
import { keyOf, type Principal } from "../domain/principal.ts";
import type { ChatWriter } from "../domain/stored-chat.ts";
import type { Ledger, TokenUsage, UsageOutcome } from "../domain/usage.ts";
import type { Admitted, Admitter } from "../policy/admit.ts";
import { requireModel } from "../policy/authorize.ts";
import { usageBounds } from "../policy/believable-usage.ts";
import { Meter } from "../policy/meter.ts";
import { readAnswer } from "./answer.ts";
import type { Capacity } from "./capacity.ts";
import type { Catalog } from "./catalog.ts";
import { type ChatRecorder, recorderFor } from "./chat-recorder.ts";
import { type DecodedRequest, type Dispatched, dispatch } from "./dispatch.ts";
import { factsOf, type RequestFacts, requireContext } from "./facts.ts";
import { relayStream, stoppingError } from "./relay.ts";
import type { Router } from "./route.ts";
import type { Stopping } from "./stopping.ts";
import { streamUsage } from "./stream-chunks.ts";

export interface InferenceCall {
  request: DecodedRequest;
  principal: Principal;
  requestId: string;
  /** Aborted when the client leaves. */
  signal: AbortSignal;
  /** An error as the text of its JSON body. */
  renderError(error: GatewayError): string;
  /** Called once it is decided whether the request is admitted, before anything is answered. */
  onLimits(status: LimitStatus): void;
  /** Called once, when the answer is delivered, failed or left; for the log. */
  onEnd(end: InferenceEnd): void;
}

export interface InferenceEnd {
  outcome: UsageOutcome;
  usage: TokenUsage;
  error: unknown;
}

export interface InferenceDeps {
  catalog: Catalog;
  router: Router;
  capacity: Capacity;
  admitter: Admitter;
  ledger: Ledger;
  /** Keeps the completions that somebody asked to keep. */
  chatWriter: ChatWriter;
  clock: Clock;
  stopping: Stopping;
  /** Silence after which a stream gets a comment line. Default 10 s. */
  heartbeatMs: number;
}

/** Either JSON text or a stream of events. Throws a GatewayError while nothing was answered yet. */
export type InferenceAnswer = string | ReadableStream<Uint8Array>;

export async function run(call: InferenceCall, deps: InferenceDeps): Promise<InferenceAnswer> {
  const { request, principal } = call;
  if (deps.stopping.begun) throw stoppingError();
  if (!deps.catalog.find(request.model)) await deps.catalog.whenComplete();
  const model = requireModel(principal, deps.catalog.find(request.model), request.model);
  requireCapability(model, request);
  requireContext(model, request);
  const facts = factsOf(request);
  const recorder = recorderFor(principal, request, deps.chatWriter);
  const admitted = await deps.admitter.admit(principal, { model, ...facts }, call.onLimits);
  const open = new OpenRequest(call, deps, { model, facts, recorder, admitted });
  return request.stream ? open.stream() : open.whole();
}

interface AdmittedRequest {
  model: Model;
  facts: RequestFacts;
  /** Where the completion is to be kept. */
  recorder: ChatRecorder | undefined;
  admitted: Admitted;
}

/** A request from its admission to its end; every way out of it settles, once. */
class OpenRequest {
  readonly #call: InferenceCall;
  readonly #deps: InferenceDeps;
  readonly #model: Model;
  readonly #facts: RequestFacts;
  readonly #createdAt: number;
  readonly #stop = new AbortController();
  readonly #meter: Meter;
  readonly #recorder: ChatRecorder | undefined;
  readonly #source: Promise<Dispatched>;
  #dispatched: Dispatched | undefined;
  /** Whether an engine was asked: what was never sent costs nothing. */
  #sent = false;
  /** The server ended first: its own end of the connection, a moment later, is no client that left. */
  #stopped = false;
  #queueMs = 0;

  constructor(call: InferenceCall, deps: InferenceDeps, { model, facts, recorder, admitted }: AdmittedRequest) {
    const { request, principal } = call;
    this.#call = call;
    this.#deps = deps;
    this.#model = model;
    this.#facts = facts;
    this.#createdAt = deps.clock.nowSeconds();
    this.#meter = new Meter({
      ledger: deps.ledger,
      clock: deps.clock,
      lease: admitted.lease,
      reservedTokens: admitted.reservedTokens,
      begin: {
        requestId: call.requestId,
        at: this.#createdAt,
        accountId: principal.account.id,
        keyId: keyOf(principal).id,
        appId: principal.appId,
        environment: principal.environment,
        operation: request.operation,
        model: model.id,
        stream: request.stream,
      },
      price: model.price,
      bounds: usageBounds(model, facts),
    });
    call.signal.addEventListener("abort", this.#abort, { once: true });
    if (call.signal.aborted) this.#abort();
    deps.stopping.add(this.#stopServing);
    this.#recorder = recorder;
    this.#source = dispatch(
      request,
      model,
      {
        router: deps.router,
        capacity: deps.capacity,
        clock: deps.clock,
        requestId: call.requestId,
        accountId: principal.account.id,
        recording: recorder !== undefined,
        modelNow: () => deps.catalog.find(request.model),
        onWaited: (ms) => {
          this.#queueMs += ms;
        },
        onSend: () => {
          this.#sent = true;
        },
      },
      this.#stop.signal,
    );
    // It may fail while a silent stream is open that nobody reads.
    this.#source.then(
      (dispatched) => {
        this.#dispatched = dispatched;
      },
      () => {},
    );
  }

  async stream(): Promise<ReadableStream<Uint8Array>> {
    const { request, signal, renderError } = this.#call;
    try {
      await settledOrSilent(this.#source, this.#deps.heartbeatMs);
    } catch (error) {
      throw this.#endWithoutAnswer(error);
    }
    const estimatedPrompt = () => this.#facts.promptTokens;
    // From here on the relay tells the client itself when the server ends.
    this.#deps.stopping.remove(this.#stopServing);
    return relayStream({
      request,
      source: this.#source,
      completion: this.#completion(),
      heartbeatMs: this.#deps.heartbeatMs,
      signal,
      stopping: this.#deps.stopping,
      renderError,
      abort: this.#abort,
      onPiece: (observed) => {
        if (observed.deliveredBytes === 0) return;
        const soFar = this.#facts.promptTokens + observed.deliveredPieces;
        this.#meter.delivered(soFar, () => streamUsage(estimatedPrompt, observed, false));
      },
      record: this.#recorder && ((event) => this.#recorder?.add(event)),
      onEnd: (observed, error) => {
        if (error !== undefined && observed.deliveredBytes === 0 && !observed.reported) this.#endWithoutAnswer(error);
        else this.#end(outcomeOf(error, signal), streamUsage(estimatedPrompt, observed, error === undefined), error);
      },
    });
  }

  async whole(): Promise<string> {
    const { request, signal } = this.#call;
    try {
      const dispatched = await this.#source;
      let failed = true;
      try {
        const answer = await readAnswer(request, dispatched, this.#completion());
        failed = false;
        this.#recorder?.addWhole(answer.text);
        this.#end("completed", answer.usage, undefined);
        return answer.text;
      } finally {
        dispatched.done(failed && !signal.aborted);
      }
    } catch (error) {
      throw this.#endWithoutAnswer(error);
    }
  }

  /** What of an answer is ours; a completion that is kept needs an id that no engine can repeat. */
  #completion() {
    const { request, requestId } = this.#call;
    const prefix = request.operation === "chat" ? "chatcmpl" : "cmpl";
    return {
      id: `${prefix}-${requestId.replace(/^req_/, "")}`,
      created: this.#createdAt,
      ownId: this.#recorder !== undefined,
    };
  }

  readonly #abort = (): void => this.#stop.abort();
  readonly #stopServing = (): void => {
    this.#stopped = !this.#call.signal.aborted;
    this.#stop.abort(stoppingError());
  };

  /**
   * A failure before the first token costs nothing; a client that leaves pays for the prompt that was read for it. Gives
   * the error for the client.
   */
  #endWithoutAnswer(thrown: unknown): unknown {
    const { signal } = this.#call;
    const error = this.#stopped ? stoppingError() : thrown;
    const outcome = this.#stopped ? "failed" : outcomeOf(error, signal);
    const promptTokens = outcome === "cancelled" && this.#sent ? this.#facts.promptTokens : 0;
    this.#end(outcome, { promptTokens, completionTokens: 0, estimated: true }, error);
    return error;
  }

  #end(outcome: UsageOutcome, reported: TokenUsage, error: unknown): void {
    this.#call.signal.removeEventListener("abort", this.#abort);
    this.#deps.stopping.remove(this.#stopServing);
    const usage = this.#meter.settle({
      outcome,
      usage: reported,
      errorCode: error instanceof GatewayError ? error.code : null,
      upstream: this.#dispatched?.deployment.engine.name ?? null,
      queueMs: Math.round(this.#queueMs),
    });
    if (outcome === "completed") {
      // What a limit may have cut, and what generates nothing, says nothing of the usual length.
      const { maxCompletionTokens, width } = this.#facts;
      if (maxCompletionTokens === undefined) this.#deps.admitter.learn(this.#model, usage.completionTokens / width);
      this.#recorder?.keep(this.#createdAt, usage);
    }
    this.#call.onEnd({ outcome, usage, error });
  }
}

/**
 * Waits for the engine's status, but not for ever: an engine that reads a long prompt stays silent for minutes. After
 * that the answer is begun, kept alive with comments, and a late failure becomes an error event.
 */
async function settledOrSilent(source: Promise<unknown>, silentMs: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, silentMs);
  });
  try {
    await Promise.race([source, silence]);
  } finally {
    clearTimeout(timer);
  }
}

function outcomeOf(error: unknown, signal: AbortSignal): UsageOutcome {
  if (error === undefined) return "completed";
  return signal.aborted || (error instanceof DOMException && error.name === "AbortError") ? "cancelled" : "failed";
}

const capabilityOf = { chat: "chat", completion: "completion", embedding: "embeddings" } as const;
const endpointOf = { chat: "chat completions", completion: "completions", embedding: "embeddings" } as const;

/** Only a capability that somebody states as absent refuses; where nobody says, the engine decides. */
function requireCapability(model: Model, { operation }: DecodedRequest): void {
  if (model.capabilities?.[capabilityOf[operation]] === false) {
    throw new GatewayError(
      "invalid_request",
      `model: \`${model.id}\` does not support ${endpointOf[operation]}. GET /v1/models shows the capabilities of each model.`,
    );
  }
}
