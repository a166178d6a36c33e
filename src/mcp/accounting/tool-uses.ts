// Admits each MCP tool call, records it in the ledger, and settles it exactly once.

import type { Clock } from "../../base/clock.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import { GatewayError } from "../../base/errors.ts";
import { noIndex } from "../../base/indexed-set.ts";
import { usdOf } from "../../base/money.ts";
import type { Lease } from "../../domain/limits/limits.ts";
import type { Price } from "../../domain/models/price.ts";
import { keyOf, type Principal, partyOf } from "../../domain/principal.ts";
import { redactCredentials } from "../../domain/redaction.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";
import type { McpServerSlots } from "../../domain/tools/mcp-server-slots.ts";
import type { ToolContentWriter } from "../../domain/tools/tool-content.ts";
import type { OpenToolUse, ToolObserver, ToolOutcome, ToolUse, ToolUses } from "../../domain/tools/tool-use.ts";
import type { Ledger, LedgerEntry, TokenUsage, UsageBegin } from "../../domain/usage/usage.ts";
import { type Stoppable, type Stopping, stoppingError } from "../../inference/stopping.ts";
import type { Admitter } from "../../policy/admit.ts";
import type { RefusalCounts } from "../../policy/records/refusal-counts.ts";
import type { Throttle } from "../../policy/throttle.ts";
import { bookedName, isBooked, shownName } from "./use-name.ts";

export interface MeteredUsesOptions {
  admitter: Pick<Admitter, "admit" | "refuseSpent">;
  throttle: Pick<Throttle, "require">;
  ledger: Pick<Ledger, "begin">;
  refusalCounts: Pick<RefusalCounts, "count">;
  /** Records a call that was refused before it was in the ledger. `model` is the name of the server and the tool. */
  noteRefused(use: ToolUse, model: string, error: GatewayError, durationMs: number): void;
  /** Notified of each settled call, to check what is left of quotas. */
  quotaWatch: { used(principal: Principal): void };
  observer: ToolObserver;
  slots: McpServerSlots;
  contents: ToolContentWriter;
  stopping: Stopping;
  clock: Clock;
}

type End = Parameters<OpenToolUse["ended"]>[0];

/** Tool calls use no tokens; they have a fixed price per call. */
const nothingUsed: TokenUsage = { promptTokens: 0, completionTokens: 0, estimated: false };
/** Maximum characters of a call's stored arguments and results, which people inspect. */
const maxKeptLength = 65_536;
const daySeconds = 86_400;
const withoutLimits = { onLimits: () => {} };

export class MeteredUses implements ToolUses {
  readonly #options: MeteredUsesOptions;
  /** The price of each server in the form that limits need. */
  readonly #prices = new WeakMap<McpServer, Price>();

  constructor(options: MeteredUsesOptions) {
    this.#options = options;
  }

  async permit(asked: Parameters<ToolUses["permit"]>[0]): Promise<void> {
    const { clock, admitter, throttle } = this.#options;
    const { principal, method, server } = asked;
    const startedMs = clock.monotonicMs();
    try {
      await admitter.refuseSpent(principal, withoutLimits);
      if (!isBooked(method)) await throttle.require("tools", principal);
    } catch (error) {
      if (server) this.#refused({ content: () => "", ...asked, server }, startedMs, error);
      throw error;
    }
  }

  async begin(use: ToolUse): Promise<OpenToolUse> {
    const { clock, stopping } = this.#options;
    if (stopping.begun) throw stoppingError();
    const startedMs = clock.monotonicMs();
    try {
      return isBooked(use.method) ? await this.#book(use, startedMs) : await this.#ask(use, startedMs);
    } catch (error) {
      this.#refused(use, startedMs, error);
      throw error;
    }
  }

  /**
   * Begins a request that costs nothing and is not in the ledger, such as a list. Its rate limit was checked before.
   */
  async #ask(use: ToolUse, startedMs: number): Promise<OpenToolUse> {
    const release = await this.#takeSlot(use);
    const endTrace = this.#traced(use, startedMs);
    return {
      rest: release,
      ended: async (end) => {
        release();
        endTrace(end);
      },
    };
  }

  async #book(use: ToolUse, startedMs: number): Promise<OpenToolUse> {
    const { principal, server, requestId } = use;
    const { admitter, clock } = this.#options;
    const nanoUsd = server.nanoUsdPerCall ?? 0;
    const model = { id: bookedName(use), context: undefined, price: this.#priceOf(server) };
    const size = { model, promptTokens: 0, maxCompletionTokens: 0, width: 1, tags: principal.tags, requestId };
    const { lease } = await admitter.admit(principal, size, withoutLimits);
    let release = () => {};
    try {
      release = await this.#takeSlot(use);
      const queueMs = clock.monotonicMs() - startedMs;
      const entry = await this.#onLedger(use, model.id, startedMs);
      // Record the cost before the call is sent: after a crash, the server may have received it.
      if (nanoUsd > 0) entry.progress(nothingUsed, nanoUsd);
      const endTrace = this.#traced(use, startedMs);
      const booked = { use, entry, lease, nanoUsd, startedMs, queueMs };
      return { rest: release, ended: (end) => this.#settle(booked, end, [release, () => endTrace(end)]) };
    } catch (error) {
      release();
      lease.settle(0, 0);
      throw error;
    }
  }

  /** Returns the price of a call in the form of a model that has a price per request; undefined if calls are free. */
  #priceOf(server: McpServer): Price | undefined {
    const nanoUsd = server.nanoUsdPerCall ?? 0;
    if (nanoUsd === 0) return undefined;
    let price = this.#prices.get(server);
    if (!price) {
      price = { input: 0, output: 0, request: usdOf(nanoUsd) };
      this.#prices.set(server, price);
    }
    return price;
  }

  async #takeSlot({ server, principal, cancellation, trace }: ToolUse): Promise<() => void> {
    const { slots, stopping } = this.#options;
    const goesOn = trace?.waits("queue");
    const running: Stoppable = {
      setIndex: noIndex,
      caller: principal,
      stop: (error) => cancellation?.cancel(error),
    };
    stopping.add(running);
    try {
      const release = await slots.take({ server, party: partyOf(principal), cancellation });
      return () => {
        stopping.remove(running);
        release();
      };
    } catch (error) {
      stopping.remove(running);
      throw error;
    } finally {
      goesOn?.();
    }
  }

  /** Writes the start of the call to the ledger. Rejects if that fails. */
  async #onLedger({ principal, requestId }: ToolUse, model: string, startedMs: number): Promise<LedgerEntry> {
    const { ledger, clock } = this.#options;
    const begin: UsageBegin = {
      requestId,
      at: clock.nowSeconds(),
      accountId: principal.account.id,
      keyId: keyOf(principal).id,
      appId: principal.appId,
      environment: principal.environment,
      operation: "tool",
      model,
      stream: false,
      tags: principal.tags,
    };
    const entry = ledger.begin(begin, startedMs);
    await entry.begun;
    return entry;
  }

  /** Starts the trace of a call. Returns a function that ends the trace. */
  #traced(use: ToolUse, startedMs: number): (end: End) => void {
    const { observer, clock } = this.#options;
    const { server, method, trace } = use;
    const traced = trace?.calls({ server: server.name, method, name: shownName(use) });
    return (end) => {
      const durationMs = clock.monotonicMs() - startedMs;
      observer.toolEnded({ server: server.name, method, outcome: outcomeOf(end), durationMs });
      traced?.(end.outcome === "failed" ? (end.code ?? "internal_error") : end.isError ? "tool_error" : null);
    };
  }

  #settle(booked: BookedUse, end: End, others: readonly (() => void)[]): MaybePromise<void> {
    const { use, entry, lease, startedMs, queueMs } = booked;
    const { clock, quotaWatch } = this.#options;
    for (const notify of others) notify();
    // A failed call costs nothing. A call that the client cancelled is charged, because the server was already working.
    const nanoUsd = end.outcome === "failed" ? 0 : booked.nanoUsd;
    lease.settle(0, nanoUsd);
    const [bytesIn, bytesOut] = [Buffer.byteLength(use.content()), Buffer.byteLength(end.content())];
    const details = { bytesIn, bytesOut, ...(end.isError && { toolErrors: 1 }) };
    const kept = entry.settle({
      ...nothingUsed,
      parts: { cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0, details },
      outcome: end.outcome,
      errorCode: end.code,
      nanoUsd,
      capped: false,
      upstream: use.server.name,
      durationMs: clock.monotonicMs() - startedMs,
      firstTokenMs: null,
      queueMs,
    });
    if (this.#options.contents.retentionDays > 0) this.#keep(use, end);
    quotaWatch.used(use.principal);
    return kept;
  }

  #keep({ requestId, principal, content }: ToolUse, end: End): void {
    const { contents, clock } = this.#options;
    const [asked, result] = [keptText(content()), keptText(end.content())];
    const { account, environment, appId } = principal;
    contents.add(
      {
        ...{ requestId, accountId: account.id, environment, appId, personId: keyOf(principal).personId },
        ...{ expiresAt: clock.nowSeconds() + contents.retentionDays * daySeconds, arguments: asked, result },
      },
      asked.length + result.length,
    );
  }

  #refused(use: ToolUse, startedMs: number, error: unknown): void {
    const { refusalCounts, observer, clock, noteRefused } = this.#options;
    const { server, method, principal, cancellation } = use;
    const durationMs = clock.monotonicMs() - startedMs;
    const isCancelled = cancellation?.cancelled === true && cancellation.reason === error;
    observer.toolEnded({ server: server.name, method, outcome: isCancelled ? "cancelled" : "refused", durationMs });
    if (isCancelled) return;
    const model = bookedName(use);
    refusalCounts.count(principal, model, error);
    if (error instanceof GatewayError) noteRefused(use, model, error, durationMs);
  }
}

interface BookedUse {
  use: ToolUse;
  entry: LedgerEntry;
  lease: Lease;
  nanoUsd: number;
  startedMs: number;
  queueMs: number;
}

/** Shortens a text and removes credentials. Lone surrogates are replaced, because PostgreSQL rejects them. */
function keptText(text: string): string {
  const cut = text.length > maxKeptLength ? `${text.slice(0, maxKeptLength)}…` : text;
  return redactCredentials(cut.toWellFormed());
}

function outcomeOf({ outcome, isError }: End): ToolOutcome {
  return outcome === "completed" && isError ? "tool_error" : outcome;
}
