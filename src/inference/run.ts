// The way of an inference request: authorize, admit, route, send, relay, settle.
import { Cancellation } from "../domain/cancellation.ts";
import { chatIdOf } from "../domain/chat-list.ts";
import type { ClientStream } from "../domain/client-stream.ts";
import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors.ts";
import type { LimitStatus } from "../domain/limits.ts";
import type { Deployment, Model } from "../domain/model.ts";
import type { Observer } from "../domain/observer.ts";
import { keyOf, type Principal } from "../domain/principal.ts";
import type { ChatWriter } from "../domain/stored-chat.ts";
import type { RequestTrace } from "../domain/trace.ts";
import type { Ledger, TokenUsage, UsageBegin, UsageOutcome } from "../domain/usage.ts";
import type { Admitted, Admitter } from "../policy/admit.ts";
import { mayUseModel, requireModel } from "../policy/authorize.ts";
import { usageBounds } from "../policy/believable-usage.ts";
import { Meter } from "../policy/meter.ts";
import type { RefusalCounts } from "../policy/refusal-counts.ts";
import { type Answer, readAnswer } from "./answer.ts";
import type { Dispatched, Sender } from "./attempt.ts";
import type { Capacity } from "./capacity.ts";
import type { Catalog } from "./catalog.ts";
import { type ChatRecorder, recorderFor } from "./chat-recorder.ts";
import type { DecodedRequest } from "./decoded-request.ts";
import { dispatch } from "./dispatch.ts";
import { factsOf, type RequestFacts, requireContext } from "./facts.ts";
import { type PromptPrefix, promptPrefixOf } from "./prompt-prefix.ts";
import { type RelayOptions, relay, stoppingError } from "./relay.ts";
import type { Router, Workload } from "./route.ts";
import type { Stopping } from "./stopping.ts";
import { streamUsage } from "./stream-chunks.ts";

export interface InferenceCall {
  request: DecodedRequest;
  principal: Principal;
  requestId: string;
  /** Cancelled when the client leaves. */
  left: Cancellation;
  /** Where it is traced. */
  trace?: RequestTrace | undefined;
  /** An error as the text of its JSON body. */
  renderError(error: GatewayError): string;
  /** Called once it is decided whether the request is admitted, before anything is answered. */
  onLimits(status: LimitStatus): void;
  /** Called where another model serves the request than the one that was asked for, before anything is answered. */
  onStandIn(model: string): void;
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
  refusalCounts: Pick<RefusalCounts, "count">;
  /** Keeps the completions that somebody asked to keep. */
  chatWriter: ChatWriter;
  clock: Clock;
  stopping: Stopping;
  /** Silence after which a stream gets a comment line. Default 10 s. */
  heartbeatMs: number;
  observer?: Omit<Observer, "httpEnded"> | undefined;
}

/** Either JSON, or what sends a stream of events to the client. */
export type InferenceAnswer = string | Uint8Array | ((client: ClientStream) => void);

/** Rejects with a GatewayError while nothing was answered yet. Waits for nothing that is known already. */
export async function run(call: InferenceCall, deps: InferenceDeps): Promise<InferenceAnswer> {
  const { request, principal } = call;
  if (deps.stopping.begun) throw stoppingError();
  if (!deps.catalog.find(request.model)) await deps.catalog.whenComplete();
  const model = requireModel(principal, deps.catalog.find(request.model), request.model);
  requireServable(model, request);
  const facts = factsOf(request);
  const recorder = recorderFor(principal, request, deps.chatWriter);
  const { promptTokens, maxCompletionTokens, width } = facts;
  const size = { model, promptTokens, maxCompletionTokens, width };
  let admitted: Admitted;
  try {
    const admission = deps.admitter.admit(principal, size, call.onLimits);
    admitted = admission instanceof Promise ? await waitedFor(admission, call.trace) : admission;
  } catch (error) {
    deps.refusalCounts.count(principal, model.id, error);
    const { requestId } = call;
    const { environment } = principal;
    deps.observer?.inferenceRefused({ requestId, operation: request.operation, model: model.id, environment, error });
    throw error;
  }
  const open = new OpenRequest(call, deps, { model, facts, recorder, admitted });
  return request.stream ? open.stream() : open.whole();
}

async function waitedFor(admission: Promise<Admitted>, trace: RequestTrace | undefined): Promise<Admitted> {
  const goesOn = trace?.waits("admission");
  try {
    return await admission;
  } finally {
    goesOn?.();
  }
}

interface AdmittedRequest {
  model: Model;
  facts: RequestFacts;
  /** Where the completion is to be kept. */
  recorder: ChatRecorder | undefined;
  admitted: Admitted;
}

/** A request from its admission to its end; every way out of it settles, once. */
class OpenRequest implements Sender, Workload {
  readonly requestId: string;
  readonly accountId: string;
  readonly recording: boolean;
  readonly promptTokens: number;
  readonly maxCompletionTokens: number | undefined;
  readonly width: number;
  readonly cancellation = new Cancellation();
  readonly #call: InferenceCall;
  readonly #deps: InferenceDeps;
  readonly #model: Model;
  readonly #facts: RequestFacts;
  readonly #createdAt: number;
  readonly #begin: UsageBegin;
  readonly #meter: Meter;
  readonly #recorder: ChatRecorder | undefined;
  #dispatched: Dispatched | undefined;
  /** Times that an engine was asked: what was never sent costs nothing. */
  #sendings = 0;
  /** The server ended first: its own end of the connection, a moment later, is no client that left. */
  #stopped = false;
  #queueMs = 0;
  /** Null: there is none. */
  #prefix: PromptPrefix | undefined | null = null;

  constructor(call: InferenceCall, deps: InferenceDeps, { model, facts, recorder, admitted }: AdmittedRequest) {
    const { request, principal } = call;
    this.requestId = call.requestId;
    this.accountId = principal.account.id;
    this.recording = recorder !== undefined;
    this.promptTokens = facts.promptTokens;
    this.maxCompletionTokens = facts.maxCompletionTokens;
    this.width = facts.width;
    this.#call = call;
    this.#deps = deps;
    this.#model = model;
    this.#facts = facts;
    this.#recorder = recorder;
    this.#createdAt = deps.clock.nowSeconds();
    this.#begin = {
      requestId: call.requestId,
      at: this.#createdAt,
      accountId: principal.account.id,
      keyId: keyOf(principal).id,
      appId: principal.appId,
      environment: principal.environment,
      operation: request.operation,
      model: model.id,
      stream: request.stream,
    };
    this.#meter = new Meter({
      ledger: deps.ledger,
      clock: deps.clock,
      lease: admitted.lease,
      reservedTokens: admitted.reservedTokens,
      begin: this.#begin,
      price: model.price,
      bounds: usageBounds(model, facts),
    });
    call.left.onCancel(this.#abort);
    deps.stopping.add(this.#stopServing);
    deps.observer?.inferenceBegan(this.#begin);
  }

  get workload(): Workload {
    return this;
  }

  prefix(): PromptPrefix | undefined {
    if (this.#prefix === null) this.#prefix = promptPrefixOf(this.#call.request, this.accountId);
    return this.#prefix;
  }

  get trace(): RequestTrace | undefined {
    return this.#call.trace;
  }

  modelNow(id: string): Model | undefined {
    return this.#deps.catalog.find(id);
  }

  /** Only what the key may use, and what could serve the request if it were asked for. */
  standIns(): readonly Model[] {
    const { principal, request } = this.#call;
    return (this.#model.fallbacks ?? []).flatMap((id) => {
      const model = this.#deps.catalog.find(id);
      return model && mayUseModel(principal, model) && isServable(model, request) ? [model] : [];
    });
  }

  waited(ms: number): void {
    this.#queueMs += ms;
  }

  sending(): void {
    this.#sendings++;
  }

  attempted({ engine }: Deployment, error: unknown): void {
    if (error !== undefined) this.trace?.attemptFailed(error);
    this.#deps.observer?.attempted(this.requestId, this.#model.id, engine.name, error);
  }

  async whole(): Promise<string | Uint8Array> {
    try {
      const dispatched = await this.#dispatch();
      let answer: Answer | undefined;
      try {
        const read = readAnswer(this.#call.request, dispatched, this.#completion(), this.cancellation);
        answer = read instanceof Promise ? await read : read;
      } finally {
        dispatched.done(answer === undefined && !this.#call.left.cancelled, answer?.usage.completionTokens);
      }
      this.#recorder?.addWhole(answer.text);
      await this.#end("completed", answer.usage, undefined);
      return answer.body;
    } catch (error) {
      throw await this.#endWithoutAnswer(error);
    }
  }

  async stream(): Promise<(client: ClientStream) => void> {
    const source = this.#dispatch();
    // It may fail while a silent stream is open that nobody reads.
    source.catch(() => {});
    try {
      await settledOrSilent(source, this.#deps.heartbeatMs);
    } catch (error) {
      throw await this.#endWithoutAnswer(error);
    }
    // From here on the relay tells the client itself when the server ends.
    this.#deps.stopping.remove(this.#stopServing);
    return (client) => this.#relay(this.#dispatched ?? source, client);
  }

  /** Once the request is on the ledger. */
  async #dispatch(): Promise<Dispatched> {
    await this.#meter.begun;
    const { request } = this.#call;
    const dispatched = await dispatch(request, this.#model, this.#deps, this);
    this.#dispatched = dispatched;
    const { model } = dispatched;
    if (model.id !== this.#model.id) {
      this.#meter.servedBy({ price: model.price, bounds: usageBounds(model, this.#facts) });
      this.#call.onStandIn(model.id);
    }
    return dispatched;
  }

  #relay(source: Dispatched | Promise<Dispatched>, client: ClientStream): void {
    const { request, left, renderError } = this.#call;
    const estimatedPrompt = () => this.#facts.promptTokens;
    const options: RelayOptions = {
      request,
      source,
      completion: this.#completion(),
      heartbeatMs: this.#deps.heartbeatMs,
      left,
      stopping: this.#deps.stopping,
      renderError,
      abort: this.#abort,
      onPiece: (observed) => {
        if (observed.deliveredBytes === 0) return;
        this.trace?.firstToken();
        const soFar = this.#facts.promptTokens + observed.deliveredPieces;
        this.#meter.delivered(soFar, () => streamUsage(estimatedPrompt, observed, false));
      },
      record: this.#record,
      onEnd: async (observed, error) => {
        if (error !== undefined && observed.deliveredBytes === 0 && !observed.reported) {
          await this.#endWithoutAnswer(error);
        } else {
          await this.#end(outcomeOf(error, left), streamUsage(estimatedPrompt, observed, error === undefined), error);
        }
      },
    };
    relay(options, client);
  }

  /** Undefined where nobody keeps the answer. */
  get #record(): ((events: string) => void) | undefined {
    const recorder = this.#recorder;
    const trace = this.trace?.takesContent ? this.trace : undefined;
    if (!recorder && !trace) return undefined;
    return (events) => {
      recorder?.add(events);
      trace?.delivered(events);
    };
  }

  /** What of an answer is ours; a completion that is kept needs an id that no engine can repeat. */
  #completion() {
    const { request, requestId } = this.#call;
    return {
      id: request.operation === "chat" ? chatIdOf(requestId) : `cmpl-${requestId.replace(/^req_/, "")}`,
      created: this.#createdAt,
      ownId: this.#recorder !== undefined,
    };
  }

  readonly #abort = (): void => this.cancellation.cancel();
  readonly #stopServing = (): void => {
    this.#stopped = !this.#call.left.cancelled;
    this.cancellation.cancel(stoppingError());
  };

  /**
   * A failure before the first token costs nothing; a client that leaves pays for the prompt that was read for it. Gives
   * the error for the client.
   */
  async #endWithoutAnswer(thrown: unknown): Promise<unknown> {
    const error = this.#stopped ? stoppingError() : thrown;
    const outcome = this.#stopped ? "failed" : outcomeOf(error, this.#call.left);
    const promptTokens = outcome === "cancelled" && this.#sendings > 0 ? this.#facts.promptTokens : 0;
    await this.#end(outcome, { promptTokens, completionTokens: 0, estimated: true }, error);
    return error;
  }

  /** Resolves when the end may be shown: it is on the ledger. */
  #end(outcome: UsageOutcome, reported: TokenUsage, error: unknown): Promise<void> {
    this.#call.left.off(this.#abort);
    this.#deps.stopping.remove(this.#stopServing);
    if (error !== undefined) this.#deps.refusalCounts.count(this.#call.principal, this.#model.id, error);
    const { end, kept } = this.#meter.settle({
      outcome,
      usage: reported,
      errorCode: error instanceof GatewayError ? error.code : null,
      upstream: this.#dispatched?.deployment.engine.name ?? null,
      queueMs: Math.round(this.#queueMs),
    });
    this.trace?.answered(end);
    const served = this.#dispatched?.model ?? this.#model;
    this.#deps.observer?.inferenceEnded(this.#begin, end, {
      attempts: this.#sendings,
      standIn: served.id === this.#model.id ? undefined : served.id,
      refusal: error instanceof GatewayError ? error.refusal : undefined,
    });
    if (outcome === "completed") {
      // What a limit may have cut, and what generates nothing, says nothing of the usual length.
      const { maxCompletionTokens, width } = this.#facts;
      if (maxCompletionTokens === undefined) this.#deps.admitter.learn(served, end.completionTokens / width);
      this.#recorder?.keep(this.#createdAt, end);
    }
    this.#call.onEnd({ outcome, usage: end, error });
    return kept;
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

function outcomeOf(error: unknown, left: Cancellation): UsageOutcome {
  if (error === undefined) return "completed";
  return left.cancelled || (error instanceof DOMException && error.name === "AbortError") ? "cancelled" : "failed";
}

const capabilityOf = { chat: "chat", completion: "completion", embedding: "embeddings" } as const;
const endpointOf = { chat: "chat completions", completion: "completions", embedding: "embeddings" } as const;

function requireServable(model: Model, request: DecodedRequest): void {
  requireCapability(model, request);
  requireContext(model, request);
}

function isServable(model: Model, request: DecodedRequest): boolean {
  try {
    requireServable(model, request);
    return true;
  } catch {
    return false;
  }
}

/** Only a capability that somebody states as absent refuses; where nobody says, the engine decides. */
function requireCapability(model: Model, { operation }: DecodedRequest): void {
  if (model.capabilities?.[capabilityOf[operation]] === false) {
    throw new GatewayError(
      "invalid_request",
      `model: \`${model.id}\` does not support ${endpointOf[operation]}. GET /v1/models shows the capabilities of each model.`,
    );
  }
}
