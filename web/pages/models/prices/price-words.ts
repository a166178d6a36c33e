// Texts for the rates of a price and their conditions.
import type { ListedPrice } from "../../../api/types.ts";
import { count, rate } from "../../../parts/words/figures.ts";

export type Price = ListedPrice["price"];
type Variant = NonNullable<Price["variants"]>[number];
export type RateName = Exclude<keyof Price, "variants">;

/** The titles of the rates, in display order. */
const rateTitles: Record<RateName, string> = {
  input: "Input",
  cached_input: "Cached input",
  cache_write: "Cache write",
  cache_write_1h: "Cache write for an hour",
  input_audio: "Audio in the prompt",
  input_image: "Images in the prompt",
  output: "Output",
  reasoning: "Reasoning",
  output_audio: "Audio in the answer",
  output_image: "Images in the answer",
  request: "Each request",
  search: "Each search",
  document: "Each document",
  search_unit: "Each search unit",
  character: "Each character",
  second: "Each second",
  image: "Each image",
};

/** Returns the rates that are set, with their titles. */
export function ratesOf(price: Partial<Record<RateName, number>>): [title: string, text: string][] {
  return (Object.keys(rateTitles) as RateName[]).flatMap((name) => {
    const value = price[name];
    return value === undefined ? [] : [[rateTitles[name], rate(value)] as [string, string]];
  });
}

/** Returns "Prompts of more than 272,000 tokens" or "Served as flex, from 2026-12-01 on". */
export function conditionText({ context_above: above, served, from, hours, days }: Variant): string {
  const parts = [
    ...(above === undefined ? [] : [`prompts of more than ${count(above)} tokens`]),
    ...(served === undefined ? [] : [`served as ${served}`]),
    ...(from === undefined ? [] : [`from ${from} on`]),
    ...(days === undefined ? [] : [`on ${days.map((day) => dayNames[day]).join(", ")}`]),
    ...(hours === undefined ? [] : [`${hours.join(", ")} UTC`]),
  ].join(", ");
  return parts === "" ? "Always" : parts.charAt(0).toUpperCase() + parts.slice(1);
}

const dayNames: Record<NonNullable<Variant["days"]>[number], string> = {
  ...{ mon: "Mondays", tue: "Tuesdays", wed: "Wednesdays", thu: "Thursdays" },
  ...{ fri: "Fridays", sat: "Saturdays", sun: "Sundays" },
};

/** Returns the rates of a variant in one line. */
export function variantText({ factor, ...variant }: Variant): string {
  const rates = ratesOf(variant).map(([title, text]) => `${title.toLowerCase()} ${text}`);
  const all = factor === undefined ? [] : [`all rates for tokens × ${factor}`];
  return [...rates, ...all].join(", ");
}
