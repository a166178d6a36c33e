// A single model call of a response whose tools the gateway runs. Each model call has its own record in the ledger.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { GatewayError } from "../../base/errors.ts";
import type { LimitStatus } from "../../domain/limits/limits.ts";
import type { Priority } from "../../domain/models/policies/priority.ts";
import type { Principal } from "../../domain/principal.ts";
import type { CacheResult } from "../../domain/usage/cache-result.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { UsageEnd, UsageOutcome } from "../../domain/usage/usage.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import type { InferenceAnswer, InferenceCall } from "../call.ts";
import type { Guarding } from "../guarding.ts";
import type { QueuePosition } from "../routing/capacity.ts";

export interface AgentStep {
  readonly request: DecodedRequest;
  /** The principal with its current rights. */
  readonly principal: Principal;
  readonly requestId: string;
  /** True for the first model call of the response. Only this call notifies the client before its answer. */
  readonly isFirst: boolean;
  /** Called if guardrails have masked a part of the request. */
  masked(request: DecodedRequest): void;
  /** Called when the model call is in the ledger. */
  begun(): void;
  ended(outcome: UsageOutcome, usage: UsageEnd, error: unknown): void;
}

export class AgentStepCall implements InferenceCall<InferenceAnswer> {
  guarding: Guarding | undefined;
  readonly principal: Principal;
  readonly requestId: string;
  readonly cacheHeader: string | null;
  readonly trace: RequestTrace | undefined;
  readonly #call: InferenceCall<unknown>;
  readonly #turn: AgentStep;
  #request: DecodedRequest;

  constructor(call: InferenceCall<unknown>, turn: AgentStep) {
    this.#call = call;
    this.#turn = turn;
    this.#request = turn.request;
    this.principal = turn.principal;
    this.requestId = turn.requestId;
    this.cacheHeader = call.cacheHeader ?? null;
    this.trace = call.trace;
  }

  get request(): DecodedRequest {
    return this.#request;
  }

  set request(masked: DecodedRequest) {
    this.#request = masked;
    this.#turn.masked(masked);
  }

  get tagHeader(): string | null {
    return this.#call.tagHeader;
  }

  get priority(): Priority | undefined {
    return this.#call.priority;
  }

  get clientGone(): Cancellation {
    return this.#call.clientGone;
  }

  get memoryAccount(): MemoryAccount {
    return this.#call.memoryAccount;
  }

  get onWanted(): (() => void) | undefined {
    return this.#call.onWanted;
  }

  renderError(error: GatewayError): string {
    return this.#call.renderError(error);
  }

  get mayCharge(): (() => Promise<boolean>) | undefined {
    const call = this.#call;
    return call.mayCharge && (() => call.mayCharge?.() ?? Promise.resolve(true));
  }

  onLimits(status: LimitStatus): void {
    if (this.#turn.isFirst) this.#call.onLimits(status);
  }

  onServedBy(model: string): void {
    if (this.#turn.isFirst) this.#call.onServedBy(model);
  }

  onIgnored(members: readonly string[]): void {
    if (this.#turn.isFirst) this.#call.onIgnored(members);
  }

  onCapped(tokens: number): void {
    if (this.#turn.isFirst) this.#call.onCapped(tokens);
  }

  onContinued(times: number): void {
    this.#call.onContinued?.(times);
  }

  onFindings(findings: Guarding["findings"]): void {
    if (this.#turn.isFirst) this.#call.onFindings?.(findings);
  }

  onQueued(waitedMs: number, position: QueuePosition | undefined): void {
    if (this.#turn.isFirst) this.#call.onQueued?.(waitedMs, position);
  }

  onCache(result: CacheResult, ageSeconds: number | undefined): void {
    if (this.#turn.isFirst) this.#call.onCache?.(result, ageSeconds);
  }

  onLedger(): void {
    this.#turn.begun();
    if (this.#turn.isFirst) this.#call.onLedger();
  }

  onEnd(outcome: UsageOutcome, usage: UsageEnd, error: unknown): void {
    this.#turn.ended(outcome, usage, error);
  }

  answer(answer: InferenceAnswer): InferenceAnswer {
    return answer;
  }
}
