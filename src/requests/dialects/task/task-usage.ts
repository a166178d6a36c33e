// What a task used: what was told counts; tokens that nobody told are estimated, and other units counted in the request.
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { UsageUnits } from "../../../domain/usage/usage-parts.ts";
import type { AskedRequest } from "../answer.ts";
import type { ReplyUsage } from "../conversation/reply.ts";
import { type Delivered, isFarBelow } from "../least-usage.ts";
import { detailsOf, partsOf } from "../told-parts.ts";

/** More than so many times what the request tells is no account of it: sound that is packed most is about a hundredth of others. */
const maxTimes = 1_000;
/** Fewer seconds than this part of what the request tells are none either: an estimate from bytes is at most some times too long. */
const leastPart = 1 / 10;
/** UTF-8 bytes of text that are said in a second at most, the times of subtitles included: fast speech has some 30. */
const spokenBytesPerSecond = 80;
/** Tokens of a second of sound: those that listen have 10 to 50. Far fewer are no account of it. */
const [soundTokensPerSecond, minSoundTokensPerSecond] = [10, 0.1];

/** `units`: as the request tells. `delivered`: text of the answer; its tokens are an estimate, 0 where they are not to be counted. */
export function usageOfTask(
  told: ReplyUsage | undefined,
  asked: UsageUnits | undefined,
  { promptTokens }: Pick<AskedRequest, "promptTokens">,
  delivered: Delivered,
): TokenUsage {
  const units = asked && withSpoken(asked, delivered.bytes);
  const isBelieved = !units || !told?.details || isPlausible(told.details, units);
  const details = detailsOf({ ...units, ...told?.details, ...(isBelieved ? {} : units) });
  const { promptTokens: tokens, completionTokens = 0 } = told ?? {};
  if (tokens === undefined) {
    const estimate = { promptTokens, completionTokens: Math.max(completionTokens, delivered.tokens), estimated: true };
    return { ...estimate, parts: partsOf({ ...told, details }) };
  }
  const ofSound = told?.details?.seconds === undefined ? (units?.seconds ?? 0) : 0;
  const isTooFew = isFarBelow(tokens, promptTokens) || tokens < ofSound * minSoundTokensPerSecond;
  if (isTooFew) {
    const ofPrompt = Math.max(promptTokens, ofSound * soundTokensPerSecond);
    const parts = partsOf({ details: detailsOf({ ...details, ...units }) });
    return { promptTokens: ofPrompt, completionTokens, estimated: true, understated: true, parts };
  }
  return { promptTokens: tokens, completionTokens, estimated: !isBelieved, parts: partsOf({ ...told, details }) };
}

/** A text that was heard takes its time, however short the file seems to be. */
function withSpoken(units: UsageUnits, bytes: number): UsageUnits {
  const { seconds } = units;
  return seconds === undefined
    ? units
    : { ...units, seconds: Math.max(seconds, Math.ceil(bytes / spokenBytesPerSecond)) };
}

function isPlausible(told: UsageUnits, asked: UsageUnits): boolean {
  const names = Object.keys(asked) as (keyof UsageUnits)[];
  const isLong = told.seconds === undefined || told.seconds >= (asked.seconds ?? 0) * leastPart;
  return isLong && names.every((name) => (told[name] ?? 0) <= (asked[name] ?? 0) * maxTimes);
}
