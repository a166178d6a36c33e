// The trail of a request that its first model server did not simply answer: who was asked, what came of it, and when.

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
 * `refused`: it answered with an error; `broke_off`: it took the request, and its answer ended early or could not be read;
 * `no_room`: it took the request, and here, or at its node, there was no room for more of its answer; `cancelled`: the client left, or the server stopped, while it was asked. `queue_full` and `queue_timeout`: no place was
 * to be had, so none was asked. The others were not asked: `resting` after failures, `away` as it is not connected or about
 * to be taken out of service, `not_retried` as too many requests for the model are second tries already. `overflowed`: by the policy of its model it went to a
 * server that others come before; `reason` says why. `masked`, `blocked` and `noted`: a guardrail
 * found something; `reason` says which one, and how often. `over_quota`: it was not asked, as it costs more than a quota has left.
 */
export type StepResult = (typeof stepResults)[number];

export interface TrailStep {
  /** Name of the model server; null where the step is about none of them. */
  upstream: string | null;
  /** The upstream's own id of the model; null likewise. */
  upstreamModel: string | null;
  /** Public id of the model that was tried: the one that was asked for, or one that stands in for it. */
  model: string;
  result: StepResult;
  /** Status of its answer, where that was an error. */
  status: number | null;
  /** The reason for operators: what it said, or what is known of the fault, cleaned and cut. */
  reason: string | null;
  /** Milliseconds from the start of the request. */
  startedMs: number;
  durationMs: number;
  /** Steps between it and the one before that are not kept; missing: none. */
  leftOut?: number;
}

/** Oldest first. */
export type Trail = readonly TrailStep[];

/** Whether a model server was asked in it. */
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

/** A trail longer than this keeps its first steps and the last one, which says how many are left out. */
export const maxSteps = 16;
/** Characters of a reason. */
export const maxReasonLength = 200;
