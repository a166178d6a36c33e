// One-line summaries for the collapsed sections of a key's form.
import { numberOf } from "../../parts/editing/typed-number.ts";
import { amountInWords, keyAmounts } from "../../parts/words/amounts.ts";
import { count, counted, span } from "../../parts/words/figures.ts";
import { scopes } from "../../parts/words/scopes.ts";
import { type KeyDraft, newDraft } from "./key-draft.ts";

const cacheWords = { model: [], on: ["responses always cached"], off: ["responses never cached"] } as const;

export function permissionSummary({ scopes: chosen }: KeyDraft): string {
  return scopes.flatMap(({ scope, title }) => (chosen.includes(scope) ? [title] : [])).join(", ") || "None";
}

export function toolSummary({ tools }: KeyDraft): string {
  if (tools === null) return "All tools";
  return tools.length === 0 ? "No tools" : tools.join(", ");
}

/** Names the folded settings that are not at their defaults; empty if all are. */
export function moreSummary(draft: KeyDraft): string {
  const nothing = newDraft([]);
  return [modelSummary, toolSummary, limitSummary, addressSummary, labelSummary]
    .flatMap((summary) => (summary(draft) === summary(nothing) ? [] : [summary(draft)]))
    .join("; ");
}

export function modelSummary({ models, neverLeaves, priority, responseCache }: KeyDraft): string {
  return [
    models.length === 0 ? "All models" : models.join(", "),
    ...(neverLeaves ? ["local servers only"] : []),
    ...(priority === null ? [] : [`${priority} priority`]),
    ...cacheWords[responseCache],
  ].join(", ");
}

export function limitSummary({ rateLimit, windowSeconds, amounts, quotas }: KeyDraft): string {
  const requests = finite(numberOf(rateLimit));
  const set = [
    ...(requests === null ? [] : [`${count(requests)} requests in ${span(windowSeconds)}`]),
    ...keyAmounts.flatMap((amount) =>
      amount.unit === "USD" ? [] : amountInWords(amount, finite(numberOf(amounts[amount.wire]))),
    ),
    ...(quotas.length === 0 ? [] : [counted(quotas.length, "quota")]),
  ];
  return set.join(", ") || "Only the account's limits";
}

export function addressSummary({ addresses }: KeyDraft): string {
  return addresses.join(", ") || "Any address";
}

export function labelSummary({ tags, note }: KeyDraft): string {
  return [...tags, ...(note.trim() === "" ? [] : ["a note"])].join(", ") || "None";
}

/** Returns the number, or null if the field is empty or its text is not a number yet. */
function finite(value: number | null): number | null {
  return value !== null && Number.isFinite(value) ? value : null;
}
