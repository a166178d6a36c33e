// Returns the usage of a task: reported figures, with estimated tokens and requested units where the server reports
// none.
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { UsageUnits } from "../../../domain/usage/usage-parts.ts";
import type { AskedRequest } from "../answer.ts";
import type { ReplyUsage } from "../conversation/reply.ts";
import { type Delivered, isFarBelow } from "../least-usage.ts";
import { detailsOf, partsOf } from "../reported-parts.ts";

/**
 * A report above this multiple of the figure from the request is ignored: the most compressed sound has about a
 * hundredth of the usual bytes.
 */
const maxTimes = 1_000;
/**
 * A report of fewer seconds than this part of the request's estimate is ignored: an estimate from bytes is at most a
 * few times too long.
 */
const leastPart = 1 / 10;
/** Maximum UTF-8 bytes of text per spoken second, subtitle times included: fast speech has about 30. */
const spokenBytesPerSecond = 80;
/** Tokens per second of sound (transcription models have 10 to 50), and the lowest credible value. */
const [soundTokensPerSecond, minSoundTokensPerSecond] = [10, 0.1];

/**
 * `asked` holds the units of the request. `delivered` is the text of the answer; its token count is an estimate, or 0
 * if its tokens are not counted.
 */
export function usageOfTask(
  reported: ReplyUsage | undefined,
  asked: UsageUnits | undefined,
  { promptTokens }: Pick<AskedRequest, "promptTokens">,
  delivered: Delivered,
): TokenUsage {
  const units = asked && withSpoken(asked, delivered.bytes);
  const isAccepted = !units || !reported?.details || isPlausible(reported.details, units);
  const details = detailsOf({ ...units, ...reported?.details, ...(isAccepted ? {} : units) });
  const { promptTokens: tokens, completionTokens = 0 } = reported ?? {};
  if (tokens === undefined) {
    const estimate = { promptTokens, completionTokens: Math.max(completionTokens, delivered.tokens), estimated: true };
    return { ...estimate, parts: partsOf({ ...reported, details }) };
  }
  const ofSound = reported?.details?.seconds === undefined ? (units?.seconds ?? 0) : 0;
  const isTooFew = isFarBelow(tokens, promptTokens) || tokens < ofSound * minSoundTokensPerSecond;
  if (isTooFew) {
    const ofPrompt = Math.max(promptTokens, ofSound * soundTokensPerSecond);
    const parts = partsOf({ details: detailsOf({ ...details, ...units }) });
    return { promptTokens: ofPrompt, completionTokens, estimated: true, understated: true, parts };
  }
  return { promptTokens: tokens, completionTokens, estimated: !isAccepted, parts: partsOf({ ...reported, details }) };
}

/** A transcript takes time to speak, so its length sets a minimum for the seconds, however short the file seems. */
function withSpoken(units: UsageUnits, bytes: number): UsageUnits {
  const { seconds } = units;
  return seconds === undefined
    ? units
    : { ...units, seconds: Math.max(seconds, Math.ceil(bytes / spokenBytesPerSecond)) };
}

function isPlausible(reported: UsageUnits, asked: UsageUnits): boolean {
  const names = Object.keys(asked) as (keyof UsageUnits)[];
  const isLong = reported.seconds === undefined || reported.seconds >= (asked.seconds ?? 0) * leastPart;
  return isLong && names.every((name) => (reported[name] ?? 0) <= (asked[name] ?? 0) * maxTimes);
}
