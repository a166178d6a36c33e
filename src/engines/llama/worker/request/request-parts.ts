// Reads the fields that chat and text completions have in common.
import type { Fields } from "./fields.ts";
import { invalid } from "./request-error.ts";

const maxStops = 16;
const maxStopLength = 1024;
const maxChoices = 128;

/** Reads `stop`, which is one text or several. */
export function readStops(fields: Fields): string[] {
  const value = fields.value("stop");
  if (value === undefined) return [];
  const stops: unknown[] = Array.isArray(value) ? value : [value];
  if (stops.length > maxStops) throw invalid(`stop may hold at most ${maxStops} strings.`, "stop");
  return stops.map((stop) => {
    if (typeof stop === "string" && stop !== "" && stop.length <= maxStopLength) return stop;
    throw invalid(`stop must be a string of 1 to ${maxStopLength} characters, or an array of such strings.`, "stop");
  });
}

export function readStreaming(fields: Fields): { stream: boolean; includeUsage: boolean } {
  const stream = fields.boolean("stream") ?? false;
  const options = fields.object("stream_options");
  const includeUsage = options?.boolean("include_usage") ?? false;
  return { stream, includeUsage: stream && includeUsage };
}

/** Reads `n`, the number of answers to one prompt. */
export function readChoiceCount(fields: Fields): number {
  return fields.integer("n", 1, maxChoices) ?? 1;
}

/**
 * Refuses log probabilities. The library computes them only after top-k and top-p filtering, so they would
 * differ from those of OpenAI's API.
 */
export function refuseLogprobs(fields: Fields): void {
  for (const key of ["logprobs", "top_logprobs"]) {
    const value = fields.value(key);
    const none = value === undefined || value === false || (key === "top_logprobs" && value === 0);
    if (!none) {
      throw invalid(
        `${key}: the built-in engine cannot tell log-probabilities. Leave it out, or use another model.`,
        key,
      );
    }
  }
}
