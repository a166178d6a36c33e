// The attempt log of a request that its first model server did not simply answer.

export const stepResults = [
  "answered",
  "refused",
  "timed_out",
  "unreachable",
  "broke_off",
  "no_room",
  "cancelled",
  "queue_full",
  "queue_timeout",
  "resting",
  "away",
  "not_retried",
  "overflowed",
  "masked",
  "blocked",
  "noted",
  "over_quota",
] as const;
/**
 * `refused`: the server answered with an error. `broke_off`: the answer ended early or could not be read. `no_room`:
 * the gateway or node had no memory for more of the answer. `cancelled`: the client left, or the gateway stopped, while
 * the server was asked. `queue_full` and `queue_timeout`: no slot was available, so no server was asked. Not asked:
 * `resting` after failures, `away` if it is not connected or drained, `not_retried` if the retry budget is used up,
 * `over_quota` if it costs more than a quota has left. `overflowed`: the model's overflow policy sent the request to a
 * server that others come before; `reason` says why. `masked`, `blocked` and `noted`: a guardrail found something;
 * `reason` has its name and the number of findings.
 */
export type StepResult = (typeof stepResults)[number];

export interface TrailStep {
  /** Name of the model server; null for a step without one. */
  upstream: string | null;
  /** The upstream's own id of the model; null for a step without a server. */
  upstreamModel: string | null;
  /** Public id of the tried model: the requested one, or a fallback. */
  model: string;
  result: StepResult;
  /** Status of an error answer. */
  status: number | null;
  /** The reason for operators: the server's message or the known fault, cleaned and shortened. */
  reason: string | null;
  /** Milliseconds from the start of the request. */
  startedMs: number;
  durationMs: number;
  /** Number of steps that were left out before this step. Missing: 0. */
  leftOut?: number;
}

/** Oldest first. */
export type Trail = readonly TrailStep[];

/** Reports whether a model server was asked in this step. */
export function wasAsked({ result }: Pick<TrailStep, "result">): boolean {
  return !notAsked.has(result);
}

const notAsked: ReadonlySet<StepResult> = new Set([
  "queue_full",
  "queue_timeout",
  "resting",
  "away",
  "not_retried",
  "overflowed",
  "masked",
  "blocked",
  "noted",
  "over_quota",
]);

/** A longer log keeps its first steps and the last one, which has the number of steps left out. */
export const maxSteps = 16;
/** Maximum length of a reason in characters. */
export const maxReasonLength = 200;
