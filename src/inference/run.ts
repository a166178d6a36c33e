// Authorizes and admits an inference request, then starts it (open-request.ts).

import type { MaybePromise } from "../base/deferred.ts";
import type { Model } from "../domain/models/model.ts";
import { keyOf } from "../domain/principal.ts";
import { askedTag } from "../domain/usage/comparison.ts";
import type { UsageBegin } from "../domain/usage/usage.ts";
import type { Admitted } from "../policy/admit.ts";
import { requireModel } from "../policy/authorize.ts";
import { Meter } from "../policy/meter.ts";
import { usageBounds } from "../policy/usage-bounds.ts";
import { recorderFor } from "./answer/recorder.ts";
import { noteLeastLimit } from "./asking.ts";
import { type InferenceCall, type InferenceDeps, sizeOf, urgencyOf } from "./call.ts";
import { beginGuarding, guardrailsOf } from "./guarding.ts";
import { type Keeps, OpenRequest } from "./open-request.ts";
import { requireServable } from "./routing/servable.ts";
import { splitOf } from "./shadow/split.ts";
import { stoppingError } from "./stopping.ts";

/**
 * Runs a model request. Throws or rejects with a GatewayError if the request fails before there is an answer. Returns
 * no promise if everything needed is already known.
 */
export function run<Result>(call: InferenceCall<Result>, deps: InferenceDeps): MaybePromise<Result> {
  if (deps.stopping.begun) throw stoppingError();
  const model = deps.catalog.find(call.request.model);
  return model ? admit(call, deps, model) : admitLater(call, deps);
}

/**
 * Waits until every engine was asked for its models, because one of them may have the model. Then admits the request.
 */
async function admitLater<Result>(call: InferenceCall<Result>, deps: InferenceDeps): Promise<Result> {
  await deps.catalog.whenComplete();
  return await admit(call, deps, deps.catalog.find(call.request.model));
}

function admit<Result>(
  call: InferenceCall<Result>,
  deps: InferenceDeps,
  found: Model | undefined,
): MaybePromise<Result> {
  const { request, principal } = call;
  const asked = requireModel(principal, found, request.model);
  const split = asked.policies?.split;
  const model = split ? splitOf(asked, split, call, deps.catalog) : asked;
  requireServable(model, request);
  noteLeastLimit(request, model);
  const guardrails = guardrailsOf(asked, model);
  return guardrails ? guarded(call, deps, asked, model, guardrails) : admitTo(call, deps, asked, model);
}

/** Admits a request. `asked` is the requested model, and `model` is the one that answers, which may be the same. */
function admitTo<Result>(
  call: InferenceCall<Result>,
  deps: InferenceDeps,
  asked: Model,
  model: Model,
): MaybePromise<Result> {
  const recorder = recorderFor(call, model.id, deps);
  const cached = deps.answerCache?.open(call, model, recorder !== undefined);
  const tags = tagsOf(call, deps, asked);
  let admission: Admitted | Promise<Admitted>;
  try {
    admission = deps.admitter.admit(call.principal, sizeOf(call, deps, model, tags), call);
  } catch (error) {
    reportRefused(call, deps, model, error);
    throw error;
  }
  if (!(admission instanceof Promise)) return begin(call, deps, model, tags, { recorder, cached }, admission);
  return beginLater(call, deps, model, tags, { recorder, cached }, admission);
}

function tagsOf(call: InferenceCall<unknown>, deps: InferenceDeps, asked: Model): readonly string[] | undefined {
  const said = deps.requestTags.of(call.principal, call.tagHeader, call.request);
  return asked.policies?.split ? [...(said ?? []), askedTag(asked.id)] : said;
}

/**
 * Runs the guardrails, and continues with the masked request. The request is admitted before. It counts even if it is
 * blocked, because checking it costs something.
 */
async function guarded<Result>(
  call: InferenceCall<Result>,
  deps: InferenceDeps,
  asked: Model,
  model: Model,
  names: readonly string[],
): Promise<Result> {
  const { principal, requestId, memoryAccount, clientGone } = call;
  const neverLeaves = principal.modelAccess?.neverLeaves === true;
  const tags = tagsOf(call, deps, asked);
  let at: number;
  let admitted: Admitted | undefined;
  let keeps: Keeps;
  try {
    const guardedCall = {
      requestId,
      model: model.id,
      memoryAccount,
      clientGone,
      neverLeaves,
      priority: urgencyOf(call),
    };
    const guarding = beginGuarding(deps.guardrails, names, guardedCall);
    call.guarding = guarding;
    admitted = await deps.admitter.admit(principal, sizeOf(call, deps, model, tags), call);
    at = deps.clock.nowSeconds();
    const masked = await guarding.ofRequest(call.request);
    if (masked) {
      call.request = masked;
      call.trace?.asked(masked);
    }
    const recorder = recorderFor(call, model.id, deps);
    keeps = { recorder, cached: deps.answerCache?.open(call, model, recorder !== undefined) };
  } catch (error) {
    admitted?.lease.settle(0, 0);
    reportRefused(call, deps, model, error);
    throw error;
  } finally {
    call.onFindings?.(call.guarding?.findings ?? []);
  }
  return await begin(call, deps, model, tags, keeps, admitted, at);
}

/**
 * Starts a request that was admitted at `at` (Unix seconds): records it in the ledger and sends it. Quotas count the
 * request in the month of `at`.
 */
function begin<Result>(
  call: InferenceCall<Result>,
  deps: InferenceDeps,
  model: Model,
  tags: readonly string[] | undefined,
  keeps: Keeps,
  admitted: Admitted,
  at = deps.clock.nowSeconds(),
): MaybePromise<Result> {
  const { request, principal, requestId } = call;
  const usage: UsageBegin = {
    requestId,
    at,
    accountId: principal.account.id,
    keyId: keyOf(principal).id,
    appId: principal.appId,
    environment: principal.environment,
    operation: request.operation,
    model: model.id,
    stream: request.stream,
    tags,
  };
  const meter = new Meter(deps, admitted, usage, model.price, usageBounds(model, request));
  return new OpenRequest(call, deps, model, keeps, usage, meter).start();
}

async function beginLater<Result>(
  call: InferenceCall<Result>,
  deps: InferenceDeps,
  model: Model,
  tags: readonly string[] | undefined,
  keeps: Keeps,
  admission: Promise<Admitted>,
): Promise<Result> {
  const goesOn = call.trace?.waits("admission");
  let admitted: Admitted;
  try {
    admitted = await admission;
  } catch (error) {
    reportRefused(call, deps, model, error);
    throw error;
  } finally {
    goesOn?.();
  }
  return await begin(call, deps, model, tags, keeps, admitted);
}

function reportRefused(call: InferenceCall<unknown>, deps: InferenceDeps, model: Model, error: unknown): void {
  const { principal, requestId, request } = call;
  const { environment } = principal;
  deps.refusalCounts.count(principal, model.id, error);
  deps.observer?.inferenceRefused({ requestId, operation: request.operation, model: model.id, environment, error });
}
