// The attempt log of a request. It is written unless the first model server simply answered.

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
 * the server was asked. `queue_full` and `queue_timeout`: no slot was available, so no server was asked. The next four
 * also mean that the server was not asked. `resting`: it pauses after failures. `away`: it is not connected or is
 * drained. `not_retried`: the retry budget is used up. `over_quota`: it costs more than a quota has left. `overflowed`:
 * the model's overflow policy sent the request to a server that others come before; `reason` says why. `masked`,
 * `blocked` and `noted`: a guardrail found something; `reason` has its name and the number of findings.
 */
export type StepResult = (typeof stepResults)[number];

export interface TrailStep {
  /** Name of the model server. Null if the step concerns none. */
  upstream: string | null;
  /** The model's id at the upstream. Null if the step concerns no server. */
  upstreamModel: string | null;
  /** Public id of the model that was tried: the requested model or a fallback. */
  model: string;
  result: StepResult;
  /** HTTP status of an error answer. Null if there was none. */
  status: number | null;
  /** The reason, for operators: the server's message or a known fault. The text is cleaned and shortened. */
  reason: string | null;
  /** Milliseconds from the start of the request. */
  startedMs: number;
  durationMs: number;
  /** The number of steps left out before this step. Missing means none. */
  leftOut?: number;
}

/** Oldest first. */
export type Trail = readonly TrailStep[];

/** Reports whether the request was sent to a model server in this step. */
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

/**
 * Maximum number of steps. A longer log keeps the first steps and the last one, which has the number of steps left out.
 */
export const maxSteps = 16;
/** Maximum length of a reason in characters. */
export const maxReasonLength = 200;
