// One call of a model: what is asked for, and what its way needs.

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

/** What is asked for, and who asks: told of what belongs to the answer, or to the log, beside what `run` gives. */
export interface InferenceCall<Result> extends LimitListener {
  request: DecodedRequest;
  principal: Principal;
  requestId: string;
  /** `x-headrace-tags` as the client sent it; null: it did not. */
  tagHeader: string | null;
  /** How urgent it asks to be, within what its keys may. Left out: the highest of that. */
  readonly priority?: Priority | undefined;
  /** `x-headrace-cache` as the client sent it; null, or left out: it did not. */
  cacheHeader?: string | null;
  /** Cancelled when the client leaves. */
  clientGone: Cancellation;
  /** On whose account bytes are held for it. */
  memoryAccount: MemoryAccount;
  /** Where it is traced. */
  trace?: RequestTrace | undefined;
  /** Only for a request of the idle lane: called where its place is wanted, which it gives back by being cancelled. */
  onWanted?: (() => void) | undefined;
  /** Set where guardrails look at it. */
  guarding?: Guarding | undefined;
  /** True if `answer` takes a long list as bytes that come. Left out: `answer` takes JSON as a whole alone. */
  readonly passesLongAnswers?: boolean;
  /** An error as the text of its JSON body. */
  renderError(error: GatewayError): string;
  /** Called with the id of the model that serves, where the client asked by another name, before anything is answered. */
  onServedBy(model: string): void;
  /** Called where members of the request are left out of account, as the engine has nothing for them; likewise. */
  onIgnored(members: readonly string[]): void;
  /** Called where a quota allows the answer fewer tokens than the client did, with how many; likewise. */
  onCapped(tokens: number): void;
  /** Called each time that another deployment goes on with a stream, with how often one has; for the log. */
  onContinued?(times: number): void;
  /** Called with what guardrails have found, where they have, before anything is answered. */
  onFindings?(findings: Guarding["findings"]): void;
  /**
   * Called with how long it waited for a place at a model, before anything is answered, or, where the answer of a stream begins
   * while it waits, with where it stands as well.
   */
  onQueued?(waitedMs: number, standing: QueuePosition | undefined): void;
  /** Called where answers of the model are kept for this request, with what came of that; likewise. */
  onCache?(result: CacheResult, ageSeconds: number | undefined): void;
  /**
   * Asked before the end is charged, where another process may have ended the response meanwhile or it may not be stored:
   * false if so, so that nothing is charged for what no client reads. Left out: nobody else ends it. Never rejects.
   */
  readonly mayCharge?: (() => Promise<boolean>) | undefined;
  /** Called where the ledger has taken the request, before an engine is asked. */
  onLedger(): void;
  /** Called once, when the answer is delivered, failed or left; for the log. */
  onEnd(outcome: UsageOutcome, usage: UsageEnd, error: unknown): void;
  /** Makes of the answer what `run` gives for it. */
  answer(answer: InferenceAnswer): Result;
}

/** How urgent it is. The idle lane is behind everybody, also where its place is no matter: at servers, nodes and judges. */
export function urgencyOf({
  onWanted,
  priority,
  principal,
}: Pick<InferenceCall<unknown>, "onWanted" | "priority" | "principal">): Priority {
  return onWanted ? "low" : (priority ?? principal.priority ?? defaultPriority);
}

/** Facts of a request to the model that limits need. */
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
  /** Left out where no model overflows. */
  overflow?: Overflow | undefined;
  admitter: Pick<Admitter, "admit" | "admitDearer" | "learn" | "learnCached">;
  requestTags: Pick<RequestTags, "of">;
  ledger: Pick<Ledger, "begin">;
  refusalCounts: Pick<RefusalCounts, "count">;
  usageDoubts: Pick<UsageDoubts, "understated" | "limitIgnored" | "ignoredLimits" | "ignoresLimits">;
  /** Keeps the completions that somebody asked to keep. */
  chatWriter: ChatWriter;
  /** Keeps responses, before their clients hear that they have ended. */
  responseKeeper: ResponseKeeper;
  /** Seals what the clients of an account keep for us. */
  sealFor(accountId: string): AccountSeal;
  /** Looks at requests and answers of models that name some; left out: nobody does. */
  guardrails?: Guardrails | undefined;
  /** Runs tools of servers within responses; left out: nothing of the kind is known. */
  hosted?: HostedTools | undefined;
  clock: Clock;
  stopping: Stopping;
  /** Answers that are given again; left out: none are. */
  answerCache?: Pick<AnswerCache, "open"> | undefined;
  /** Silence after which a stream gets a comment line. Default 10 s. */
  heartbeatMs: number;
  observer?: Omit<Observer, "httpEnded"> | undefined;
  /** Told of requests for models with a shadow as they are sent; undefined: nothing is shadowed here. */
  shadows?: ShadowSender | undefined;
  /** Told of each request that has settled: what its limits have left is looked at later. */
  quotaWatch?: { used(principal: Pick<Principal, "limits" | "account">): void } | undefined;
}

export interface ShadowSender {
  /** A request for `model`, which has a shadow, is being sent to its engine. */
  sent(policy: ShadowPolicy, model: string, call: InferenceCall<unknown>): void;
}

/** JSON, or what sends a stream of events to the client, or bytes as they come. */
export type InferenceAnswer = string | Bytes | ((client: ClientStream) => void) | PassedBytes;

/** Bytes of a type that its server told. */
export interface PassedBytes {
  readonly contentType: string;
  /** Called once, when the head of the answer is on its way. */
  begin(client: ClientStream): void;
}
