// Counts requests that fail through no fault of the client, and reports when their rate is too high.
import type { Clock } from "../../base/clock.ts";
import type { ErrorCode } from "../../base/errors.ts";
import type { Environment } from "../../domain/api-key.ts";
import type { AttemptCause } from "../../domain/usage/attempt-health.ts";
import type { HttpEnd, InferenceCourse, Observer, RefusedInference } from "../../domain/usage/observer.ts";
import type { UsageBegin, UsageEnd } from "../../domain/usage/usage.ts";
import type { IncidentState } from "./incident-watch.ts";

const windowSeconds = 300;
/** Error rate in percent at which an incident begins, and below which it ends. */
const tooMany = 10;
const fineAgain = 5;
/** Minimum requests of a window for a meaningful rate. */
const fewest = 20;
/** Maximum accounts of one window. Further accounts count only in the total. */
const maxAccounts = 20_000;
const ofServers: ReadonlySet<string> = new Set<ErrorCode>([
  "internal_error",
  "upstream_error",
  "upstream_timeout",
  "service_unavailable",
]);

/** Reports whether a request failed through no fault of its client. */
export function isServersFault({ outcome, errorCode }: Pick<UsageEnd, "outcome" | "errorCode">): boolean {
  return outcome === "failed" && (errorCode === null || ofServers.has(errorCode));
}

class Count {
  requests = 0;
  failed = 0;
  readonly accountId: string | null;
  readonly environment: Environment | null;
  /** True if the error rate reached `tooMany` and has not fallen below the lower threshold since. */
  isOut: boolean;

  constructor(accountId: string | null, environment: Environment | null, isOut: boolean) {
    this.accountId = accountId;
    this.environment = environment;
    this.isOut = isOut;
  }

  add(requests: number, failed: number): void {
    this.requests += requests;
    this.failed += failed;
  }

  get rate(): number {
    return this.requests === 0 ? 0 : (100 * this.failed) / this.requests;
  }
}

/** Observer that counts requests and passes all events on to another observer. */
export class ErrorWatch implements Observer {
  readonly #next: Observer;
  readonly #clock: Pick<Clock, "monotonicMs">;
  /**
   * Counts by account and environment. Two look-ups of strings with known hashes are faster than building one combined
   * key.
   */
  readonly #accounts = new Map<string, Map<Environment, Count>>();
  #whole = new Count(null, null, false);
  #startedMs: number;

  constructor(next: Observer, clock: Pick<Clock, "monotonicMs">) {
    this.#next = next;
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
  }

  httpEnded(end: HttpEnd): void {
    this.#next.httpEnded(end);
  }

  inferenceBegan(begin: UsageBegin): void {
    this.#next.inferenceBegan(begin);
  }

  inferenceEnded(begin: UsageBegin, end: UsageEnd, course: InferenceCourse): void {
    this.count(begin.accountId, begin.environment, 1, isServersFault(end) ? 1 : 0);
    this.#next.inferenceEnded(begin, end, course);
  }

  /** Adds to the counts: `failed` of these requests failed through no fault of their clients. */
  count(accountId: string, environment: Environment, requests: number, failed: number): void {
    this.#whole.add(requests, failed);
    this.#countOf(accountId, environment)?.add(requests, failed);
  }

  inferenceRefused(refused: RefusedInference): void {
    this.#next.inferenceRefused(refused);
  }

  attempted(upstream: string, model: string, error: unknown, cause?: AttemptCause): void {
    this.#next.attempted(upstream, model, error, cause);
  }

  /** Returns the current incidents, and starts a new window if the current one is over. */
  states(): IncidentState[] {
    for (const count of this.#counts()) if (count.requests >= fewest && count.rate >= tooMany) count.isOut = true;
    if (this.#clock.monotonicMs() - this.#startedMs >= windowSeconds * 1000) this.#turn();
    return this.#counts()
      .filter(({ isOut }) => isOut)
      .map((count) => stateOf(count));
  }

  #counts(): Count[] {
    return [this.#whole, ...[...this.#accounts.values()].flatMap((counts) => [...counts.values()])];
  }

  #turn(): void {
    this.#startedMs = this.#clock.monotonicMs();
    const next = (count: Count) =>
      new Count(count.accountId, count.environment, count.isOut && count.rate >= fineAgain);
    this.#whole = next(this.#whole);
    for (const [accountId, counts] of [...this.#accounts]) {
      for (const [environment, count] of [...counts]) {
        const after = next(count);
        if (after.isOut) counts.set(environment, after);
        else counts.delete(environment);
      }
      if (counts.size === 0) this.#accounts.delete(accountId);
    }
  }

  #countOf(accountId: string, environment: Environment): Count | undefined {
    let counts = this.#accounts.get(accountId);
    if (!counts) {
      if (this.#accounts.size >= maxAccounts) return undefined;
      counts = new Map();
      this.#accounts.set(accountId, counts);
    }
    let count = counts.get(environment);
    if (!count) {
      count = new Count(accountId, environment, false);
      counts.set(environment, count);
    }
    return count;
  }
}

function stateOf({ accountId, environment, requests, failed, rate, isOut }: Count): IncidentState {
  const subject = `errors:${accountId ?? "all"}:${environment ?? "all"}`;
  const data = { environment, requests, failed, rate: Math.round(rate * 10) / 10, window_seconds: windowSeconds };
  return {
    subject,
    isOut,
    began: (since) => ({ type: "errors.rate", accountId, environment, once: `${subject} ${since}`, data }),
    // The end of an incident is not reported.
    ended: () => undefined,
  };
}
