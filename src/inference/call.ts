// The types of a model call: the request, its caller, the callbacks and the dependencies.

import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { Bytes } from "../base/bytes/byte-span.ts";
import type { ClientStream } from "../base/bytes/client-stream.ts";
import type { Cancellation } from "../base/cancellation.ts";
import type { Clock } from "../base/clock.ts";
import type { GatewayError } from "../base/errors.ts";
import type { Deployment, Model } from "../domain/models/model.ts";
import { defaultPriority, type Priority } from "../domain/models/policies/priority.ts";
import type { ShadowPolicy } from "../domain/models/policies/traffic.ts";
import type { ResponseKeeper } from "../domain/models/response-keeper.ts";
import type { ChatWriter } from "../domain/models/stored-chat.ts";
import type { Principal } from "../domain/principal.ts";
import type { AccountSeal } from "../domain/seal.ts";
import type { CacheResult } from "../domain/usage/cache-result.ts";
import type { Observer } from "../domain/usage/observer.ts";
import type { RequestTrace } from "../domain/usage/trace.ts";
import type { Ledger, UsageEnd, UsageOutcome } from "../domain/usage/usage.ts";
import type { Admitter, LimitListener, RequestSize } from "../policy/admit.ts";
import type { RefusalCounts } from "../policy/records/refusal-counts.ts";
import type { UsageDoubts } from "../policy/records/usage-doubts.ts";
import type { RequestTags } from "../policy/request-tags.ts";
import type { DecodedRequest } from "../requests/decoded-request.ts";
import type { AnswerCache } from "./cache/answer-cache.ts";
import type { Guarding, Guardrails } from "./guarding.ts";
import type { HostedTools } from "./hosted/model-tools.ts";
import type { Catalog } from "./models/catalog.ts";
import type { Overflow } from "./overflow/overflow.ts";
import type { Capacity, QueuePosition } from "./routing/capacity.ts";
import type { Router } from "./routing/route.ts";
import type { Stopping } from "./stopping.ts";

/** A request, its caller, and the callbacks for its answer. `Result` is what `run` returns. */
export interface InferenceCall<Result> extends LimitListener {
  request: DecodedRequest;
  principal: Principal;
  requestId: string;
  /** Value of the header `x-headrace-tags`, or null. */
  tagHeader: string | null;
  /** Requested priority. Default: the highest that the key allows. */
  readonly priority?: Priority | undefined;
  /** Value of the header `x-headrace-cache`. Null or undefined if the header is missing. */
  cacheHeader?: string | null;
  /** Cancelled when the client leaves. */
  clientGone: Cancellation;
  /** The memory account for buffered bytes. */
  memoryAccount: MemoryAccount;
  /** The trace of the request, if it is traced. */
  trace?: RequestTrace | undefined;
  /**
   * Set for calls that only use idle capacity. Called when another request needs the slot. Then cancel the call to free
   * the slot.
   */
  onWanted?: (() => void) | undefined;
  /** The guardrails of the request, if there are any. */
  guarding?: Guarding | undefined;
  /** True if `answer` accepts a long JSON list while it is still arriving. Default: only complete JSON. */
  readonly passesLongAnswers?: boolean;
  /** Returns the JSON body of an error. */
  renderError(error: GatewayError): string;
  /** Called before the answer with the model's id, if the client used another name. */
  onServedBy(model: string): void;
  /** Called before the answer if the engine's format lacks some members of the request, so that these are ignored. */
  onIgnored(members: readonly string[]): void;
  /** Called before the answer with the token limit, if a quota allows fewer tokens than the client. */
  onCapped(tokens: number): void;
  /** Called each time when another deployment continues the stream. `times` is the number of continuations so far. */
  onContinued?(times: number): void;
  /** Called before the answer with the findings of guardrails, if there are any. */
  onFindings?(findings: Guarding["findings"]): void;
  /**
   * Called before the answer with the time that the request waited for a slot. If the stream begins while the request
   * still waits, `position` is its position in the queue.
   */
  onQueued?(waitedMs: number, position: QueuePosition | undefined): void;
  /** Called before the answer with the result of the cache look-up, if the request may use the response cache. */
  onCache?(result: CacheResult, ageSeconds: number | undefined): void;
  /**
   * Called before the usage is charged. Resolves to false if nothing is charged because no client reads the answer:
   * another process has ended the response, or the response cannot be stored. Undefined if no other process can end the
   * response. Never rejects.
   */
  readonly mayCharge?: (() => Promise<boolean>) | undefined;
  /** Called once the request is recorded in the ledger, before an engine is asked. */
  onLedger(): void;
  /**
   * Called once, when the answer was delivered, has failed or was abandoned. `served` is the deployment that answered.
   * It is undefined if none or several did.
   */
  onEnd(outcome: UsageOutcome, usage: UsageEnd, error: unknown, served?: Deployment): void;
  /** Converts the answer to the value that `run` returns. */
  answer(answer: InferenceAnswer): Result;
}

/** Returns the priority of a call. It is always `low` for calls that only use idle capacity. */
export function urgencyOf({
  onWanted,
  priority,
  principal,
}: Pick<InferenceCall<unknown>, "onWanted" | "priority" | "principal">): Priority {
  return onWanted ? "low" : (priority ?? principal.priority ?? defaultPriority);
}

/** Returns the facts of a request against which limits are checked. */
export function sizeOf(
  { request, requestId }: InferenceCall<unknown>,
  { usageDoubts }: InferenceDeps,
  model: Model,
  tags: readonly string[] | undefined,
): RequestSize {
  const { promptTokens, maxCompletionTokens, width, stream } = request;
  const isLimitable = request.dialect.task === undefined;
  const limitHolds = request.limitHolds && !usageDoubts.ignoresLimits(model, request.dialect);
  // The object is written as one literal, because a spread would cost a copy for each request.
  return {
    model,
    promptTokens,
    maxCompletionTokens,
    limitHolds,
    width,
    isLimitable,
    stream,
    tags,
    requestId,
    asked: request,
  };
}

export interface InferenceDeps {
  catalog: Pick<Catalog, "find" | "get" | "whenComplete">;
  router: Router;
  capacity: Capacity;
  /** Decides when a model's overflow deployments may be used. Undefined if no model has any. */
  overflow?: Overflow | undefined;
  admitter: Pick<Admitter, "admit" | "admitDearer" | "learn" | "learnCached">;
  requestTags: Pick<RequestTags, "of">;
  ledger: Pick<Ledger, "begin">;
  refusalCounts: Pick<RefusalCounts, "count">;
  usageDoubts: Pick<UsageDoubts, "usageUnderReported" | "limitIgnored" | "ignoredLimits" | "ignoresLimits">;
  /** Stores chat completions. */
  chatWriter: ChatWriter;
  /** Stores responses. */
  responseKeeper: ResponseKeeper;
  /** Returns the encryption for data that an account's clients store on behalf of the gateway, such as reasoning. */
  sealFor(accountId: string): AccountSeal;
  /** Checks requests and answers. Undefined if no guardrail is configured. */
  guardrails?: Guardrails | undefined;
  /** Runs tools of MCP servers within responses. Undefined if this is not supported. */
  hosted?: HostedTools | undefined;
  clock: Clock;
  stopping: Stopping;
  /** The response cache. Undefined if answers are not cached. */
  answerCache?: Pick<AnswerCache, "open"> | undefined;
  /** Milliseconds without output after which a stream gets a keep-alive comment. Default 10 s. */
  heartbeatMs: number;
  observer?: Omit<Observer, "httpEnded"> | undefined;
  /** Sends copies of requests to shadow models. Undefined if there are none. */
  shadows?: ShadowSender | undefined;
  /** Notified of each request after it was charged, to check the remaining quota later. */
  quotaWatch?: { used(principal: Pick<Principal, "limits" | "account">): void } | undefined;
}

export interface ShadowSender {
  /** Called when a request is sent to the engine of `model`, which has a shadow model. */
  sent(policy: ShadowPolicy, model: string, call: InferenceCall<unknown>): void;
}

/** An answer to a model call: JSON, a function that streams events to the client, or bytes that are forwarded. */
export type InferenceAnswer = string | Bytes | ((client: ClientStream) => void) | PassedBytes;

/** Bytes that are forwarded to the client, with their content type. */
export interface PassedBytes {
  readonly contentType: string;
  /** Called once, when the answer's headers were sent. */
  begin(client: ClientStream): void;
}
