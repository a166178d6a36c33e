// Quotas per window as they read.
import type { AccountOverview, ApiKey } from "../../api/types.ts";
import { count, money, span } from "./figures.ts";

type Quota = ApiKey["quotas"][number];

const spans: Readonly<Record<string, string>> = { "5h": "5 hours" };
const unitNames: Record<Quota["unit"], string> = { requests: "Requests", tokens: "Tokens", usd: "Spend" };

/** What it is per: hour, 5 hours, 90 s. */
function spanOfQuota(per: Quota["per"]): string {
  return typeof per === "number" ? span(per) : (spans[per] ?? per);
}

/** "200 requests per 5 hours from first use", "$5.00 per day for gpt-* with the tag team-a". */
export function quotaInWords({ unit, amount, per, window, models, tag, hard_stop: stops }: Quota): string {
  const figure = unit === "usd" ? money(amount) : `${count(amount)} ${unit}`;
  return `${figure} per ${spanOfQuota(per)}${kindText(per, window)}${whichText({ models, tag })}${stops ? ", hard stop" : ""}`;
}

/** "Requests per 5 hours", "Spend per day for gpt-*". */
export function nameOfQuota({
  unit,
  per,
  window,
  models,
  tag,
}: Omit<AccountOverview["quotas"][number], "amount">): string {
  return `${unitNames[unit]} per ${spanOfQuota(per)}${kindText(per, window)}${whichText({ models, tag })}`;
}

/** All of a list in one line; "none" where there is none. */
export function quotasInWords(quotas: readonly Quota[]): string {
  return quotas.length === 0 ? "none" : quotas.map(quotaInWords).join("; ");
}

/** Said where the span might be that of the calendar. */
function kindText(per: Quota["per"], window: Quota["window"]): string {
  return window === "rolling" && per !== "5h" && typeof per !== "number" ? " from first use" : "";
}

interface Which {
  models?: readonly string[] | null | undefined;
  tag?: string | null | undefined;
}

function whichText({ models, tag }: Which): string {
  return (models ? ` for ${models.join(", ")}` : "") + (tag ? ` with the tag ${tag}` : "");
}
