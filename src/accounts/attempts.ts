// Limits failed attempts: each attempt takes a slot, and returns it on success.
import { type ErrorCode, GatewayError } from "../base/errors.ts";
import type { LimitStore } from "../domain/limits/limits.ts";

/** The number of attempts that may fail in a row. Slots are restored evenly over the window. */
export interface AttemptLimit {
  /** The key of the counter. */
  id: string;
  limit: number;
  windowSeconds: number;
}

export interface Attempt {
  succeeded(): void;
  failed(): void;
}

const failures: ReadonlySet<ErrorCode> = new Set(["invalid_request", "permission_denied"]);
const oneAttempt = { tokens: 1, nanoUsd: 0, minTokens: 1, minNanoUsd: 0 };

export class Attempts {
  readonly #limits: Pick<LimitStore, "admit">;

  constructor(limits: Pick<LimitStore, "admit">) {
    this.#limits = limits;
  }

  /**
   * Begins an attempt that counts towards every limit. If one limit has no free slot, the attempt counts towards none,
   * and the result says when to retry.
   */
  async begin(rules: readonly AttemptLimit[]): Promise<Attempt | { retryAfterSeconds: number }> {
    const tokens = rules.map((rule) => ({ ...rule, owner: "account" as const }));
    const admission = await this.#limits.admit({ requests: [], tokens, quotas: [] }, oneAttempt);
    if ("refusal" in admission) return { retryAfterSeconds: Math.ceil(admission.refusal.retryAfterSeconds ?? 1) };
    const { lease } = admission;
    return { succeeded: () => lease.settle(0, 0), failed: () => lease.settle(1, 0) };
  }

  /**
   * Runs the task, or throws `rate_limit_exceeded` with `message` if a limit has no free slot. A task that throws
   * `invalid_request` or `permission_denied` has failed. Other errors are not the caller's fault and take no slot.
   */
  async run<Value>(
    rules: readonly AttemptLimit[],
    message: string,
    task: () => Promise<Value>,
    onRefused?: () => void,
  ): Promise<Value> {
    const attempt = await this.begin(rules);
    if ("retryAfterSeconds" in attempt) {
      onRefused?.();
      throw tooMany(message, attempt.retryAfterSeconds);
    }
    try {
      const value = await task();
      attempt.succeeded();
      return value;
    } catch (error) {
      if (error instanceof GatewayError && failures.has(error.code)) attempt.failed();
      else attempt.succeeded();
      throw error;
    }
  }

  /** Counts a failed attempt without running a task. Throws `rate_limit_exceeded` if a limit has no free slot. */
  async count(rules: readonly AttemptLimit[], message: string): Promise<void> {
    const attempt = await this.begin(rules);
    if ("retryAfterSeconds" in attempt) throw tooMany(message, attempt.retryAfterSeconds);
    attempt.failed();
  }
}

function tooMany(message: string, retryAfterSeconds: number): GatewayError {
  const wait = retryAfterSeconds > 90 ? `${Math.ceil(retryAfterSeconds / 60)} minutes` : `${retryAfterSeconds} s`;
  return new GatewayError("rate_limit_exceeded", `${message} Try again in ${wait}.`, { retryAfterSeconds });
}
