// Returns the usage of a task. It consists of reported figures. If the server reports none, tokens are estimated and
// units are taken from the request.
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { UsageUnits } from "../../../domain/usage/usage-parts.ts";
import type { AskedRequest } from "../answer.ts";
import type { ReplyUsage } from "../conversation/reply.ts";
import { type Delivered, isFarBelow } from "../least-usage.ts";
import { detailsOf, partsOf } from "../reported-parts.ts";

/**
 * If a reported figure is more than this multiple of the figure from the request, the report is ignored. The most
 * compressed sound has about a hundredth of the usual bytes.
 */
const maxTimes = 1_000;
/**
 * If a report has fewer seconds than this part of the request's estimate, the report is ignored. An estimate from bytes
 * is at most a few times too long.
 */
const leastPart = 1 / 10;
/**
 * Maximum number of UTF-8 bytes of text for each spoken second, including subtitle times. Fast speech has about 30
 * bytes.
 */
const spokenBytesPerSecond = 80;
/**
 * Number of tokens for each second of sound (transcription models have 10 to 50), and the lowest number that is
 * credible.
 */
const [soundTokensPerSecond, minSoundTokensPerSecond] = [10, 0.1];

/**
 * Returns the usage of a task. `asked` holds the units of the request. `delivered` is the text of the answer. Its token
 * count is an estimate, or 0 if its tokens are not counted.
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

/**
 * Raises the seconds to the time that it takes to speak the transcript. This minimum applies however short the file
 * seems.
 */
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
