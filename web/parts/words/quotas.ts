// Describes quotas in words.
import type { AccountOverview, ApiKey } from "../../api/types.ts";
import { count, money, span } from "./figures.ts";

type Quota = ApiKey["quotas"][number];

const spans: Readonly<Record<string, string>> = { "5h": "5 hours" };
const unitNames: Record<Quota["unit"], string> = { requests: "Requests", tokens: "Tokens", usd: "Spend" };

/** Returns the span of a quota: hour, 5 hours, 90 s. */
function spanOfQuota(per: Quota["per"]): string {
  return typeof per === "number" ? span(per) : (spans[per] ?? per);
}

/** Returns "200 requests per day from first use" or "$5.00 per day for gpt-* with the tag team-a". */
export function quotaInWords({ unit, amount, per, window, models, tag, hard_stop: stops }: Quota): string {
  const figure = unit === "usd" ? money(amount) : `${count(amount)} ${unit}`;
  return `${figure} per ${spanOfQuota(per)}${kindText(per, window)}${whichText({ models, tag })}${stops ? ", hard stop" : ""}`;
}

/** Returns "Requests per 5 hours" or "Spend per day for gpt-*". */
export function nameOfQuota({
  unit,
  per,
  window,
  models,
  tag,
}: Pick<AccountOverview["quotas"][number], "unit" | "per" | "window" | "models" | "tag">): string {
  return `${unitNames[unit]} per ${spanOfQuota(per)}${kindText(per, window)}${whichText({ models, tag })}`;
}

/** Returns all quotas of a list in one line; "none" if it is empty. */
export function quotasInWords(quotas: readonly Quota[]): string {
  return quotas.length === 0 ? "none" : quotas.map(quotaInWords).join("; ");
}

/** Returns " from first use" for a rolling window, if the span could also be a calendar window; else nothing. */
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
