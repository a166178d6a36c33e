// Schema of the attempts at a model server in the API's answers, for operators.
import { z } from "zod";
import { maxClockDifferenceSeconds } from "../base/clock.ts";
import {
  type AttemptHealth,
  attemptCauses,
  attemptText,
  attemptWindowSeconds,
  type UpstreamHealth,
} from "../domain/usage/attempt-health.ts";
import { unixSeconds } from "./parts.ts";

const members = {
  failing: z
    .boolean()
    .describe(
      `True after five failed attempts in a row, or failed attempts in a row for ten seconds. The next successful attempt ends it; at another replica, one that is more than ${maxClockDifferenceSeconds} s newer than the failures.`,
    ),
  attempts: z.int().describe(`Attempts of requests that ended in the last ${attemptWindowSeconds} s, on all replicas.`),
  failed: z.int().describe("Number of these attempts that failed through a fault of the server."),
  window_seconds: z.int(),
  since: unixSeconds.nullable().describe("First failure since the last success. null if the last attempt succeeded."),
  last_failure: z
    .object({
      cause: z.enum(attemptCauses),
      status: z.int().nullable().describe("HTTP status. null without an HTTP answer."),
      message: z.string().nullable().describe("Known phrases of the server's message. null if it has none."),
      at: unixSeconds,
    })
    .nullable()
    .describe("Last failed attempt. null if none failed recently."),
  summary: z.string().describe("The figures and the last failure in words."),
};

export const attemptsShape = z.object(members).meta({ id: "AttemptHealth" });
export const upstreamAttemptsShape = z
  .object({
    ...members,
    failing_models: z
      .array(z.string())
      .describe("Ids of the models that fail. Empty if the upstream fails as a whole, or not at all."),
  })
  .meta({ id: "UpstreamAttemptHealth" });

type AttemptsWire = z.infer<typeof attemptsShape>;

/** Returns the attempts in the form of the API, or null if nothing is known. */
export function attemptsToWire(health: AttemptHealth, nowSeconds: number): AttemptsWire | null {
  const { attempts, failed, isFailing: failing, since, last } = health;
  if (attempts === 0 && last === null) return null;
  const window_seconds = attemptWindowSeconds;
  return {
    failing,
    attempts,
    failed,
    window_seconds,
    since,
    last_failure: last,
    summary: attemptText(health, nowSeconds),
  };
}

export function upstreamAttemptsToWire(
  health: UpstreamHealth,
  nowSeconds: number,
): z.infer<typeof upstreamAttemptsShape> | null {
  const wire = attemptsToWire(health, nowSeconds);
  return wire && { ...wire, failing_models: [...health.models] };
}
