// An attempt log as the spool and the database store it: JSON, each step an array.
import { z } from "zod";
import { stepResults, type Trail, type TrailStep } from "../../domain/usage/trail.ts";

const whole = z.int().nonnegative();
const stepSchema = z.tuple(
  [
    z.string().nullable(),
    z.string().nullable(),
    z.string(),
    z.enum(stepResults),
    whole.nullable(),
    z.string().nullable(),
    whole,
    whole,
  ],
  // The number of steps that were left out before this step, if any. Later versions append further values.
  z.unknown(),
);

/** Parses an attempt log in a line of the spool. */
export const trailSchema: z.ZodType<Trail> = z.array(stepSchema).transform((steps) => steps.map(named));

export function trailText(trail: Trail): string {
  return JSON.stringify(trail.map(valuesOf));
}

/**
 * Returns as much of the log as fits into `maxBytes` of UTF-8: the last step, then the first steps, without reasons
 * that are too long. Undefined if not even the last step fits.
 */
export function shortTrailText(trail: Trail, maxBytes: number): string | undefined {
  const whole = trailText(trail);
  if (Buffer.byteLength(whole) <= maxBytes) return whole;
  const before = trail.slice(0, -1);
  const last = trail.at(-1);
  let remaining = maxBytes - "[]".length;
  const fitted = (step: TrailStep): TrailStep | undefined => {
    const bytesOf = (one: TrailStep) => Buffer.byteLength(JSON.stringify(valuesOf(one))) + ",".length;
    const fitting = [step, { ...step, reason: null }].find((one) => bytesOf(one) <= remaining);
    if (fitting) remaining -= bytesOf(fitting);
    return fitting;
  };
  const given = last?.leftOut ?? 0;
  const end = last && fitted({ ...last, leftOut: given + before.length });
  if (!end) return undefined;
  const kept: TrailStep[] = [];
  for (const step of before) {
    const fitting = fitted(step);
    if (!fitting) break;
    kept.push(fitting);
  }
  return trailText([...kept, { ...end, leftOut: given + before.length - kept.length }]);
}

function valuesOf(step: TrailStep): unknown[] {
  const { upstream, upstreamModel, model, result, status, reason, startedMs, durationMs, leftOut } = step;
  const values = [
    upstream,
    upstreamModel,
    model,
    result,
    status,
    reason,
    Math.round(startedMs),
    Math.round(durationMs),
  ];
  return leftOut ? [...values, leftOut] : values;
}

/** Returns undefined for a text that cannot be read, such as one of a later version. The rest of its record is kept. */
export function readTrail(text: string): Trail | undefined {
  try {
    return trailSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function named([upstream, upstreamModel, model, result, status, reason, startedMs, durationMs, leftOutJson]: z.infer<
  typeof stepSchema
>): TrailStep {
  const leftOut = whole.safeParse(leftOutJson).data;
  return {
    ...{ upstream, upstreamModel, model, result, status, reason, startedMs, durationMs },
    ...(leftOut ? { leftOut } : {}),
  };
}
