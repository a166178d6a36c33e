// Quotas per window as they read.
import type { ApiKey } from "../../api/types.ts";
import { count, money, span } from "./figures.ts";

type Quota = ApiKey["quotas"][number];

const spans: Readonly<Record<string, string>> = { "5h": "5 hours" };

/** What it is per: hour, 5 hours, 90 s. */
export function spanOfQuota(per: Quota["per"]): string {
  return typeof per === "number" ? span(per) : (spans[per] ?? per);
}

/** "200 requests per 5 hours from the first use on", "$5.00 per day for gpt-* with the tag team-a". */
export function quotaInWords({ unit, amount, per, window, models, tag }: Quota): string {
  const figure = unit === "usd" ? money(amount) : `${count(amount)} ${unit}`;
  const kind = window === "rolling" ? " from the first use on" : "";
  const of = (models ? ` for ${models.join(", ")}` : "") + (tag ? ` with the tag ${tag}` : "");
  return `${figure} per ${spanOfQuota(per)}${kind}${of}`;
}
