// Shows quotas and their usage to a person, and parses quotas on the command line.
import { InvalidArgumentError } from "commander";
import { z } from "zod";
import { type GivenQuotaRule, namedSpans, spanText } from "../../domain/limits/quota-rules.ts";
import { formatCount, formatRelative, formatUsd, parseSpan } from "../terminal/figures.ts";

const per = z.union([z.string(), z.number()]);
export const givenQuota = z.object({
  unit: z.string(),
  amount: z.number(),
  per,
  window: z.string().nullish(),
  models: z.array(z.string()).nullish(),
  tag: z.string().nullish(),
  hard_stop: z.boolean().nullish(),
});
export const usedQuota = z.object({
  owner: z.string(),
  unit: z.string(),
  amount: z.number(),
  used: z.number(),
  left: z.number().nullish(),
  per,
  window: z.string().nullish(),
  models: z.array(z.string()).nullish(),
  tag: z.string().nullish(),
  resets_at: z.number().nullish(),
  reason: z.string().nullish(),
  ask: z.string().nullish(),
});
type UsedQuota = z.infer<typeof usedQuota>;

const barWidth = 20;

/** Returns the used part of a limit, as a bar and in numbers. */
export function shareOf(
  { limit, used }: { limit?: number | null | undefined; used: number },
  format: (value: number) => string,
  unicode: boolean,
): string {
  if (limit == null) return `${format(used)} used, unlimited`;
  return `${barOf({ limit, used }, unicode)}, ${format(used)} of ${format(limit)}`;
}

/** Returns the used part of a quota as a bar: `█████░░░░░░░░░░░░░░░ 25 %`. */
export function barOf({ limit, used }: { limit: number; used: number }, unicode: boolean): string {
  const share = limit === 0 ? 1 : Math.min(1, used / limit);
  const filled = Math.round(share * barWidth);
  const [full, empty] = unicode ? ["█", "░"] : ["#", "-"];
  return `${full.repeat(filled) + empty.repeat(barWidth - filled)} ${Math.floor(share * 100)} %`;
}

/** Returns a name and a text for each quota: what the quota limits, and how much is used. */
export function quotaFacts(
  quotas: readonly UsedQuota[],
  unicode: boolean,
  nowSeconds: number,
): [name: string, value: string][] {
  return quotas.map((quota) => {
    const { unit, amount, used, left = Math.max(0, amount - used), resets_at: opens } = quota;
    const format = unit === "usd" ? formatUsd : formatCount;
    const share = shareOf({ limit: amount, used }, format, unicode);
    const counted = unit === "usd" ? "" : ` ${unit}`;
    return [
      nameOf(quota),
      `${share}${counted}${countedOf(quota, ", ")}, ${format(left)} left${opens == null ? "" : `, resets ${formatRelative(opens, nowSeconds)}`}`,
    ];
  });
}

/** Returns quotas in the syntax of the command line, without usage. */
export function quotaWords(quotas: readonly z.infer<typeof givenQuota>[]): string {
  return quotas
    .map(({ unit, amount, per: span, window, hard_stop: isHard, ...which }) => {
      const text = `${amount} ${unit} per ${typeof span === "number" ? `${span}s` : span}`;
      return `${text}${window ? ` ${window}` : ""}${isHard ? " hard" : ""}${countedOf(which, " ")}`;
    })
    .join(", ");
}

/** Describes which requests a quota counts. Empty if it counts all. */
function countedOf({ models, tag }: Pick<z.infer<typeof givenQuota>, "models" | "tag">, between: string): string {
  return (models ? ` for ${models.join(between)}` : "") + (tag == null ? "" : ` tagged ${tag}`);
}

function nameOf({ owner, per: span }: UsedQuota): string {
  const name = namedSpans.find((one) => one === span) ?? (typeof span === "number" ? span : undefined);
  const text = name === undefined ? String(span) : spanText(name);
  const words = owner.replace("_", " ");
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}, ${text}`;
}

export const quotasHelp = `\
A quota is an amount, a unit and a time span. Separate quotas by commas:
"200 requests per 5h, 5 usd per day, 1000000 tokens per 12h rolling for gpt-* tiny".
A quota with "tagged team-a" at its end counts only requests with this tag.
Time spans: hour, day, week, month, or a length such as 90s, 5h, 12h and 30d. Named spans
follow the calendar (UTC); others begin with the first use.
"5 usd per day hard" stops an answer at the token at which the quota is spent.`;

const quotaPattern =
  /^(?<amount>\d{1,15}(?:\.\d{1,9})?) (?<unit>requests|tokens|usd) per (?<per>\w+)(?: (?<window>calendar|rolling))?(?<hard> hard)?(?: for (?<models>.+?))?(?: tagged (?<tag>\S+))?$/;

export function parseQuotas(text: string): GivenQuotaRule[] {
  return text.split(",").map((part) => {
    const groups = quotaPattern.exec(part.trim().replaceAll(/\s+/g, " "))?.groups;
    const span = groups && spanOf(groups["per"] ?? "");
    if (!groups || span === undefined) {
      throw new InvalidArgumentError('Write quotas such as "200 requests per 5h, 5 usd per day for gpt-*".');
    }
    const { amount, unit, window, hard, models, tag } = groups;
    return {
      unit: unit as GivenQuotaRule["unit"],
      amount: Number(amount),
      per: span,
      ...(window && { window: window as "calendar" | "rolling" }),
      ...(models && { models: models.split(" ") }),
      ...(tag && { tag }),
      ...(hard && { hard_stop: true }),
    };
  });
}

function spanOf(text: string): GivenQuotaRule["per"] | undefined {
  return namedSpans.find((name) => name === text) ?? parseSpan(text);
}
