// The way of an inference request: authorize, route, send, relay, settle.
import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors.ts";
import type { Model } from "../domain/model.ts";
import type { Principal } from "../domain/principal.ts";
import type { TokenUsage, UsageOutcome, UsageStore } from "../domain/usage.ts";
import { requireModel } from "../policy/authorize.ts";
import { settle } from "../policy/settle.ts";
import { readAnswer } from "./answer.ts";
import type { Catalog } from "./catalog.ts";
import { type DecodedRequest, dispatch } from "./dispatch.ts";
import { relayStream } from "./relay.ts";
import type { Router } from "./route.ts";
import { streamUsage } from "./stream-chunks.ts";
import { estimatePromptTokens } from "./usage.ts";

export interface InferenceCall {
  request: DecodedRequest;
  principal: Principal;
  requestId: string;
  /** Aborted when the client leaves. */
  signal: AbortSignal;
  /** An error as the text of its JSON body. */
  renderError(error: GatewayError): string;
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
  usage: UsageStore;
  clock: Clock;
  /** Aborted when the server ends and can wait for open streams no longer. */
  stopping: AbortSignal;
  /** Silence after which a stream gets a comment line. Default 10 s. */
  heartbeatMs: number;
}

/** Either JSON text or a stream of events. Throws a GatewayError while nothing was answered yet. */
export type InferenceAnswer = string | ReadableStream<Uint8Array>;

export async function run(call: InferenceCall, deps: InferenceDeps): Promise<InferenceAnswer> {
  const { request, principal } = call;
  if (!deps.catalog.find(request.model)) await deps.catalog.whenComplete();
  const model = requireModel(principal, deps.catalog.find(request.model), request.model);
  requireCapability(model, request);
  requireContext(model, request);

  const stop = new AbortController();
  const abort = () => stop.abort();
  call.signal.addEventListener("abort", abort, { once: true });
  if (call.signal.aborted) abort();

  const startedAt = deps.clock.nowSeconds();
  const startedMs = deps.clock.monotonicMs();
  const end = (outcome: UsageOutcome, usage: TokenUsage, error: unknown) => {
    call.signal.removeEventListener("abort", abort);
    const durationMs = deps.clock.monotonicMs() - startedMs;
    const { requestId } = call;
    settle(deps.usage, {
      requestId,
      principal,
      operation: request.operation,
      model,
      outcome,
      usage,
      startedAt,
      durationMs,
    });
    call.onEnd({ outcome, usage, error });
  };
  /** A failure before the first token costs nothing; a client that leaves pays for the prompt that was read for it. */
  const endWithoutAnswer = (error: unknown) => {
    const outcome = outcomeOf(error, call.signal);
    const promptTokens = outcome === "cancelled" ? estimatePromptTokens(request.body) : 0;
    end(outcome, { promptTokens, completionTokens: 0, estimated: true }, error);
  };
  const completionId = `${request.operation === "chat" ? "chatcmpl" : "cmpl"}-${call.requestId}`;
  const source = dispatch(request, model, deps.router, stop.signal);
  // It may fail while a silent stream is open that nobody reads.
  source.catch(() => {});

  if (request.stream) {
    try {
      await settledOrSilent(source, deps.heartbeatMs);
    } catch (error) {
      endWithoutAnswer(error);
      throw error;
    }
    return relayStream({
      request,
      source,
      completionId,
      created: startedAt,
      heartbeatMs: deps.heartbeatMs,
      signal: call.signal,
      stopping: deps.stopping,
      renderError: call.renderError,
      abort,
      onEnd(observed, error) {
        if (error !== undefined && observed.deliveredBytes === 0 && !observed.reported) endWithoutAnswer(error);
        else end(outcomeOf(error, call.signal), streamUsage(request, observed), error);
      },
    });
  }

  try {
    const dispatched = await source;
    let failed = true;
    try {
      const answer = await readAnswer(request, dispatched, { id: completionId, created: startedAt });
      failed = false;
      end("completed", answer.usage, undefined);
      return answer.text;
    } finally {
      dispatched.done(failed && !call.signal.aborted);
    }
  } catch (error) {
    endWithoutAnswer(error);
    throw error;
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

function requireContext(model: Model, { body }: DecodedRequest): void {
  if (model.context === undefined) return;
  const name = body["max_completion_tokens"] != null ? "max_completion_tokens" : "max_tokens";
  const limit = body[name];
  if (typeof limit === "number" && limit > model.context) {
    throw new GatewayError(
      "invalid_request",
      `${name}: must be at most ${model.context}, the context of \`${model.id}\` in tokens (got ${limit}).`,
    );
  }
}
