// The way of an inference request: authorize, admit, and from there on the request takes itself (open-request.ts).
import type { Bytes } from "../base/bytes/byte-span.ts";
import type { ClientStream } from "../base/bytes/client-stream.ts";
import type { Holder } from "../base/bytes/held-bytes.ts";
import type { Cancellation } from "../base/cancellation.ts";
import type { Clock } from "../base/clock.ts";
import type { GatewayError } from "../base/errors.ts";
import type { Eventual } from "../base/later.ts";
import type { Model } from "../domain/models/model.ts";
import type { ChatWriter } from "../domain/models/stored-chat.ts";
import { keyOf, type Principal } from "../domain/principal.ts";
import type { Observer } from "../domain/usage/observer.ts";
import type { RequestTrace } from "../domain/usage/trace.ts";
import type { Ledger, TokenUsage, UsageBegin, UsageOutcome } from "../domain/usage/usage.ts";
import type { Admitted, Admitter, LimitListener } from "../policy/admit.ts";
import { requireModel } from "../policy/authorize.ts";
import { usageBounds } from "../policy/believable-usage.ts";
import { Meter } from "../policy/meter.ts";
import type { RefusalCounts } from "../policy/records/refusal-counts.ts";
import type { UsageDoubts } from "../policy/records/usage-doubts.ts";
import { type ChatRecorder, recorderFor } from "./answer/chat-recorder.ts";
import type { DecodedRequest } from "./decoded-request.ts";
import type { Catalog } from "./models/catalog.ts";
import { OpenRequest } from "./open-request.ts";
import type { Capacity } from "./routing/capacity.ts";
import type { Router } from "./routing/route.ts";
import { requireServable } from "./routing/servable.ts";
import { type Stopping, stoppingError } from "./stopping.ts";

/** What is asked for, and who asks: told of what belongs to the answer, or to the log, beside what `run` gives. */
export interface InferenceCall<Result> extends LimitListener {
  request: DecodedRequest;
  principal: Principal;
  requestId: string;
  /** Cancelled when the client leaves. */
  left: Cancellation;
  /** On whose account bytes are held for it. */
  holder: Holder;
  /** Where it is traced. */
  trace?: RequestTrace | undefined;
  /** An error as the text of its JSON body. */
  renderError(error: GatewayError): string;
  /** Called where another model serves the request than the one that was asked for, before anything is answered. */
  onStandIn(model: string): void;
  /** Called where the engine says that it left a member of the request out of account, likewise. */
  onIgnored(member: "tools"): void;
  /** Called where the ledger has taken the request, before an engine is asked. */
  onLedger(): void;
  /** Called once, when the answer is delivered, failed or left; for the log. */
  onEnd(outcome: UsageOutcome, usage: TokenUsage, error: unknown): void;
  /** Makes of the answer what `run` gives for it. */
  answer(answer: InferenceAnswer): Result;
}

export interface InferenceDeps {
  catalog: Catalog;
  router: Router;
  capacity: Capacity;
  admitter: Admitter;
  ledger: Ledger;
  refusalCounts: Pick<RefusalCounts, "count">;
  usageDoubts: Pick<UsageDoubts, "understated">;
  /** Keeps the completions that somebody asked to keep. */
  chatWriter: ChatWriter;
  clock: Clock;
  stopping: Stopping;
  /** Silence after which a stream gets a comment line. Default 10 s. */
  heartbeatMs: number;
  observer?: Omit<Observer, "httpEnded"> | undefined;
}

/** Either JSON, or what sends a stream of events to the client. */
export type InferenceAnswer = string | Bytes | ((client: ClientStream) => void);

/** Throws, or rejects with, a GatewayError while nothing was answered yet. Waits for nothing that is known already. */
export function run<Result>(call: InferenceCall<Result>, deps: InferenceDeps): Eventual<Result> {
  if (deps.stopping.begun) throw stoppingError();
  const model = deps.catalog.find(call.request.model);
  return model ? admit(call, deps, model) : admitLater(call, deps);
}

/** Of the engines that were not asked yet one may have the model. */
async function admitLater<Result>(call: InferenceCall<Result>, deps: InferenceDeps): Promise<Result> {
  await deps.catalog.whenComplete();
  return await admit(call, deps, deps.catalog.find(call.request.model));
}

function admit<Result>(call: InferenceCall<Result>, deps: InferenceDeps, found: Model | undefined): Eventual<Result> {
  const { request, principal } = call;
  const model = requireModel(principal, found, request.model);
  requireServable(model, request);
  const recorder = recorderFor(principal, request, deps.chatWriter, call.holder);
  const { promptTokens, maxCompletionTokens, width } = request;
  const size = { model, promptTokens, maxCompletionTokens, width };
  let admission: Admitted | Promise<Admitted>;
  try {
    admission = deps.admitter.admit(principal, size, call);
  } catch (error) {
    tellRefused(call, deps, model, error);
    throw error;
  }
  if (!(admission instanceof Promise)) return begin(call, deps, model, recorder, admission);
  return beginLater(call, deps, model, recorder, admission);
}

/** From here on the request has its lease, and is on the ledger. */
function begin<Result>(
  call: InferenceCall<Result>,
  deps: InferenceDeps,
  model: Model,
  recorder: ChatRecorder | undefined,
  admitted: Admitted,
): Eventual<Result> {
  const { request, principal, requestId } = call;
  const usage: UsageBegin = {
    requestId,
    at: deps.clock.nowSeconds(),
    accountId: principal.account.id,
    keyId: keyOf(principal).id,
    appId: principal.appId,
    environment: principal.environment,
    operation: request.operation,
    model: model.id,
    stream: request.stream,
  };
  const meter = new Meter(deps, admitted, usage, model.price, usageBounds(model, request));
  return new OpenRequest(call, deps, model, recorder, usage, meter).start();
}

async function beginLater<Result>(
  call: InferenceCall<Result>,
  deps: InferenceDeps,
  model: Model,
  recorder: ChatRecorder | undefined,
  admission: Promise<Admitted>,
): Promise<Result> {
  const goesOn = call.trace?.waits("admission");
  let admitted: Admitted;
  try {
    admitted = await admission;
  } catch (error) {
    tellRefused(call, deps, model, error);
    throw error;
  } finally {
    goesOn?.();
  }
  return await begin(call, deps, model, recorder, admitted);
}

function tellRefused(call: InferenceCall<unknown>, deps: InferenceDeps, model: Model, error: unknown): void {
  const { principal, requestId, request } = call;
  const { environment } = principal;
  deps.refusalCounts.count(principal, model.id, error);
  deps.observer?.inferenceRefused({ requestId, operation: request.operation, model: model.id, environment, error });
}
