// One call of a model: the request and what its processing needs.

import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { Bytes } from "../base/bytes/byte-span.ts";
import type { ClientStream } from "../base/bytes/client-stream.ts";
import type { Cancellation } from "../base/cancellation.ts";
import type { Clock } from "../base/clock.ts";
import type { GatewayError } from "../base/errors.ts";
import type { Model } from "../domain/models/model.ts";
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

/**
 * The request, its sender, and callbacks for facts about the answer or for the log, in addition to the result of `run`.
 */
export interface InferenceCall<Result> extends LimitListener {
  request: DecodedRequest;
  principal: Principal;
  requestId: string;
  /** Value of the client's header `x-headrace-tags`; null if absent. */
  tagHeader: string | null;
  /** Requested priority, within what the keys allow. Default: the highest permitted one. */
  readonly priority?: Priority | undefined;
  /** Value of the client's header `x-headrace-cache`; null or absent if the client sent none. */
  cacheHeader?: string | null;
  /** Cancelled when the client leaves. */
  clientGone: Cancellation;
  /** The account for buffered bytes. */
  memoryAccount: MemoryAccount;
  /** The trace of the request. */
  trace?: RequestTrace | undefined;
  /**
   * For requests of the idle lane: called when another request wants the slot. The slot is released by cancelling the
   * request.
   */
  onWanted?: (() => void) | undefined;
  /** Set if guardrails check the request. */
  guarding?: Guarding | undefined;
  /** True if `answer` accepts a long list as bytes that arrive. Default: it accepts only complete JSON. */
  readonly passesLongAnswers?: boolean;
  /** Returns the JSON body of an error as text. */
  renderError(error: GatewayError): string;
  /** Called with the id of the serving model if the client used another name, before any answer. */
  onServedBy(model: string): void;
  /** Called before any answer if members of the request are ignored because the engine's format lacks them. */
  onIgnored(members: readonly string[]): void;
  /** Called before any answer if a quota allows fewer tokens than the client, with their number. */
  onCapped(tokens: number): void;
  /** Called each time another deployment continues a stream, with the number of continuations; for the log. */
  onContinued?(times: number): void;
  /** Called before any answer with the findings of guardrails, if there are any. */
  onFindings?(findings: Guarding["findings"]): void;
  /**
   * Called before any answer with the time that the request waited for a slot. If a stream's answer begins while it
   * still waits, called with its position in the queue as well.
   */
  onQueued?(waitedMs: number, position: QueuePosition | undefined): void;
  /** Called before any answer if the request may use the response cache, with the result. */
  onCache?(result: CacheResult, ageSeconds: number | undefined): void;
  /**
   * Called before the end is charged, if another process may have ended the response or it cannot be stored. Resolves
   * to false if nothing may be charged, because no client reads the answer. Absent if no other process can end it.
   * Never rejects.
   */
  readonly mayCharge?: (() => Promise<boolean>) | undefined;
  /** Called when the request is in the ledger, before an engine is asked. */
  onLedger(): void;
  /** Called once, when the answer was delivered, failed or was abandoned; for the log. */
  onEnd(outcome: UsageOutcome, usage: UsageEnd, error: unknown): void;
  /** Converts the answer to the result of `run`. */
  answer(answer: InferenceAnswer): Result;
}

/**
 * Returns the urgency of a call. The idle lane comes after all others, even where slots do not matter: at servers,
 * nodes and judges.
 */
export function urgencyOf({
  onWanted,
  priority,
  principal,
}: Pick<InferenceCall<unknown>, "onWanted" | "priority" | "principal">): Priority {
  return onWanted ? "low" : (priority ?? principal.priority ?? defaultPriority);
}

/** Returns the facts of a request that its limits need. */
export function sizeOf(
  { request, requestId }: InferenceCall<unknown>,
  { usageDoubts }: InferenceDeps,
  model: Model,
  tags: readonly string[] | undefined,
): RequestSize {
  const { promptTokens, maxCompletionTokens, width, stream } = request;
  const isLimitable = request.dialect.task === undefined;
  const limitHolds = request.limitHolds && !usageDoubts.ignoresLimits(model, request.dialect);
  return {
    ...{ model, promptTokens, maxCompletionTokens, limitHolds, width, isLimitable, stream },
    ...{ tags, requestId, asked: request },
  };
}

export interface InferenceDeps {
  catalog: Pick<Catalog, "find" | "get" | "whenComplete">;
  router: Router;
  capacity: Capacity;
  /** Absent if no model overflows. */
  overflow?: Overflow | undefined;
  admitter: Pick<Admitter, "admit" | "admitDearer" | "learn" | "learnCached">;
  requestTags: Pick<RequestTags, "of">;
  ledger: Pick<Ledger, "begin">;
  refusalCounts: Pick<RefusalCounts, "count">;
  usageDoubts: Pick<UsageDoubts, "usageUnderReported" | "limitIgnored" | "ignoredLimits" | "ignoresLimits">;
  /** Stores chat completions for clients that ask for it. */
  chatWriter: ChatWriter;
  /** Stores responses before their clients get the end. */
  responseKeeper: ResponseKeeper;
  /** Returns the seal for data that clients of an account store for the gateway. */
  sealFor(accountId: string): AccountSeal;
  /** Checks requests and answers of models with guardrails; absent if there are none. */
  guardrails?: Guardrails | undefined;
  /** Runs tools of MCP servers within responses; absent if not supported. */
  hosted?: HostedTools | undefined;
  clock: Clock;
  stopping: Stopping;
  /** The response cache; absent if answers are not cached. */
  answerCache?: Pick<AnswerCache, "open"> | undefined;
  /** Milliseconds of silence after which a stream gets a comment. Default 10 s. */
  heartbeatMs: number;
  observer?: Omit<Observer, "httpEnded"> | undefined;
  /** Notified of requests for models with a shadow when they are sent; undefined if there are no shadows. */
  shadows?: ShadowSender | undefined;
  /** Notified of each settled request, so that its remaining quota is checked later. */
  quotaWatch?: { used(principal: Pick<Principal, "limits" | "account">): void } | undefined;
}

export interface ShadowSender {
  /** Called when a request for `model`, which has a shadow, is sent to its engine. */
  sent(policy: ShadowPolicy, model: string, call: InferenceCall<unknown>): void;
}

/** An answer: JSON, a function that sends a stream of events to the client, or bytes that arrive. */
export type InferenceAnswer = string | Bytes | ((client: ClientStream) => void) | PassedBytes;

/** Bytes with the type that their server reported. */
export interface PassedBytes {
  readonly contentType: string;
  /** Called once, when the head of the answer was sent. */
  begin(client: ClientStream): void;
}
