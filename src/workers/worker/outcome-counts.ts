// Counts how requests end by account, and which upstreams accepted some, for the primary process, which reports high
// failure rates.
import type { Environment } from "../../domain/api-key.ts";
import type { AttemptCause } from "../../domain/usage/attempt-health.ts";
import type { HttpEnd, InferenceCourse, Observer, RefusedInference } from "../../domain/usage/observer.ts";
import type { UsageBegin, UsageEnd } from "../../domain/usage/usage.ts";
import type { ToPrimary } from "../link/messages.ts";
import type { PrimaryLink } from "./primary-link.ts";

const everyMs = 1_000;

interface Count {
  readonly accountId: string;
  readonly environment: Environment;
  requests: number;
  failed: number;
}

/** Wraps another observer, which receives every event. */
export class OutcomeCounts implements Observer {
  readonly #next: Observer;
  readonly #link: PrimaryLink;
  readonly #isFailure: (end: UsageEnd) => boolean;
  readonly #takeAttempts: () => ToPrimary["outcomes"][2];
  #counts = new Map<string, Count>();
  /** Names of upstreams that accepted a request since the last report. */
  #took = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /**
   * `isFailure` tells whether the request failed through no fault of its client. `takeAttempts` returns the attempts
   * since its last call.
   */
  constructor(
    next: Observer,
    link: PrimaryLink,
    isFailure: (end: UsageEnd) => boolean,
    takeAttempts: () => ToPrimary["outcomes"][2],
  ) {
    this.#next = next;
    this.#link = link;
    this.#isFailure = isFailure;
    this.#takeAttempts = takeAttempts;
  }

  httpEnded(end: HttpEnd): void {
    this.#next.httpEnded(end);
  }

  inferenceBegan(begin: UsageBegin): void {
    this.#next.inferenceBegan(begin);
  }

  inferenceEnded(begin: UsageBegin, end: UsageEnd, course: InferenceCourse): void {
    const { accountId, environment } = begin;
    const name = `${environment} ${accountId}`;
    let count = this.#counts.get(name);
    if (!count) {
      count = { accountId, environment, requests: 0, failed: 0 };
      this.#counts.set(name, count);
    }
    count.requests++;
    if (this.#isFailure(end)) count.failed++;
    this.#sendSoon();
    this.#next.inferenceEnded(begin, end, course);
  }

  inferenceRefused(refused: RefusedInference): void {
    this.#next.inferenceRefused(refused);
  }

  attempted(upstream: string, model: string, error: unknown, cause?: AttemptCause): void {
    if (error === undefined) this.#took.add(upstream);
    this.#sendSoon();
    this.#next.attempted(upstream, model, error, cause);
  }

  #sendSoon(): void {
    this.#timer ??= setTimeout(() => this.#send(), everyMs);
  }

  #send(): void {
    this.#timer = undefined;
    const counts = [...this.#counts.values()].map(
      ({ accountId, environment, requests, failed }) => [accountId, environment, requests, failed] as const,
    );
    this.#counts = new Map();
    this.#link.send("outcomes", counts, [...this.#took], this.#takeAttempts());
    this.#took = new Set();
  }
}
