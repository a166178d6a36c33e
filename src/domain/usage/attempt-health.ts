// The state of model servers as the attempts of real requests show it.
import { maxClockDifferenceSeconds } from "../../base/clock.ts";

/**
 * The causes of failed attempts. `authentication`: the server refused the gateway's key. `quota`: the account at the vendor
 * has no credit or quota left. `rate_limit`: the vendor's rate limit. `overload`: the server has no capacity.
 * `not_found`: it lacks the model or the path. `not_http`: it does not speak HTTP. `no_answer`: a successful status
 * without an answer, such as an HTML page. `broke_off`: the answer began and did not end.
 */
export const attemptCauses = [
  "authentication",
  "quota",
  "rate_limit",
  "overload",
  "timeout",
  "dns",
  "tls",
  "connection",
  "not_http",
  "not_found",
  "no_answer",
  "broke_off",
  "server_error",
] as const;
export type AttemptCause = (typeof attemptCauses)[number];

/** The causes in words, for people. */
export const attemptCauseNames: Readonly<Record<AttemptCause, string>> = {
  authentication: "API key refused",
  quota: "vendor quota used up",
  rate_limit: "vendor rate limit",
  overload: "overloaded",
  timeout: "timeout",
  dns: "name not found in DNS",
  tls: "TLS failure",
  connection: "no connection",
  not_http: "does not speak HTTP",
  not_found: "model or path not found",
  no_answer: "no valid answer",
  broke_off: "answer broke off",
  server_error: "server error",
};

/** Seconds over which attempts are counted. */
export const attemptWindowSeconds = 120;

export interface AttemptFailure {
  cause: AttemptCause;
  /** HTTP status. Null without an HTTP answer. */
  status: number | null;
  /** The known phrases of the server's message. Null if there is none. */
  message: string | null;
  /** Unix seconds. */
  at: number;
}

/** A failure without its time. */
export type Fault = Omit<AttemptFailure, "at">;

/** Attempts of another process, since its last report. */
export interface AttemptDelta {
  worked: number;
  failed: number;
  /** Failures after the last success; all failures if there was no success. */
  failures: number;
  last: Fault | null;
}

/** Attempts at a model server, or at one model of it. */
export interface AttemptHealth {
  /** Ended attempts of the last `attemptWindowSeconds`. */
  attempts: number;
  failed: number;
  /** True after five failures in a row, or failures in a row for ten seconds. */
  isFailing: boolean;
  /** Unix seconds of the first failure since the last success. Null if the last attempt succeeded. */
  since: number | null;
  /** The last failure. Null if no attempt of the window failed and the last one succeeded. */
  last: AttemptFailure | null;
  /** Unix seconds of the last success. Null without a recent success, missing from replicas of older versions. */
  workedAt?: number | null;
}

/** The attempts of one process at an upstream, or at one of its models. */
export interface AttemptReport extends AttemptHealth {
  upstream: string;
  /** The model's id at the upstream. Null: all models of the upstream together. */
  model: string | null;
}

/** The state of an upstream over all processes. */
export interface UpstreamHealth extends AttemptHealth {
  /** The models that fail. Empty if the upstream fails as a whole, or not at all. */
  models: readonly string[];
}

/**
 * Returns the state that several processes saw together. The state is failing if one of them sees it fail, and no other
 * process has had a success since.
 */
export function mergedHealth(reports: readonly AttemptHealth[]): AttemptHealth | undefined {
  const [first, ...others] = reports.map((one) => (isOutdated(one, reports) ? ended(one) : one));
  return others.reduce<AttemptHealth | undefined>((all, one) => all && merged(all, one), first);
}

/** Reports whether one of the processes had a success that is surely newer than the last failure of this report. */
export function isOutdated({ last }: AttemptHealth, reports: readonly AttemptHealth[]): boolean {
  if (last === null) return false;
  return reports.some(({ workedAt }) => workedAt != null && workedAt - last.at > maxClockDifferenceSeconds);
}

function ended(health: AttemptHealth): AttemptHealth {
  return { ...health, isFailing: false, since: null, last: health.failed > 0 ? health.last : null };
}

function merged(one: AttemptHealth, other: AttemptHealth): AttemptHealth {
  return {
    attempts: one.attempts + other.attempts,
    failed: one.failed + other.failed,
    isFailing: one.isFailing || other.isFailing,
    since: earlier(one.since, other.since),
    last: (one.last?.at ?? 0) >= (other.last?.at ?? 0) ? one.last : other.last,
    workedAt: Math.max(one.workedAt ?? 0, other.workedAt ?? 0) || null,
  };
}

function earlier(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

/** Describes attempts: `25 of 25 failed in 2 min, last: 500 "CUDA out of memory" (server error), 15 s ago`. */
export function attemptText({ attempts, failed, last }: AttemptHealth, nowSeconds: number): string {
  const span = `${attemptWindowSeconds / 60} min`;
  const share = attempts === 0 ? `no requests in ${span}` : `${failed} of ${attempts} failed in ${span}`;
  if (!last) return share;
  const { cause, status, message, at } = last;
  const said = [status, message === null ? null : `"${message}"`].filter((part) => part !== null).join(" ");
  const name = attemptCauseNames[cause];
  return `${share}, last: ${said === "" ? name : `${said} (${name})`}, ${agoText(nowSeconds - at)} ago`;
}

function agoText(seconds: number): string {
  const past = Math.max(0, Math.round(seconds));
  if (past < 120) return `${past} s`;
  return past < 7_200 ? `${Math.round(past / 60)} min` : `${Math.round(past / 3_600)} h`;
}
