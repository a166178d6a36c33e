// Converts prices between two formats: that of the API and headrace.yaml, and that of the code.
import { type Price, type PriceVariant, type Rates, rates } from "./price.ts";

/** Maximum number of variants. No vendor's price has more. */
export const maxVariants = 16;
export const maxHours = 8;
export const largestRate = 1e9;
export const largestFactor = 1_000;
export const dayNames = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;
/** The form of `served`: the tier, speed or region that a model server reports, in lower case. */
export const servedPattern = /^[a-z0-9][a-z0-9._-]{0,23}$/;
/** The form of a time span of the day (UTC), such as `01:00-04:00`. */
export const hoursPattern = /^([01]\d|2[0-3]):([0-5]\d)-(([01]\d|2[0-3]):([0-5]\d)|24:00)$/;
export const fromPattern = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ)?$/;

export type RateWire = (typeof rates)[number]["wire"];
type RatesWire = { [One in RateWire]?: number };

/** Returns the text that describes a rate in the reference. */
export function rateDoc({ per, of, else: instead }: (typeof rates)[number]): string {
  const unit = per === "tokens" ? "USD per million tokens of" : "USD for";
  const other = rates.find(({ name }) => name === instead);
  return `${unit} ${of}.${other ? ` Default: \`${other.wire}\`.` : ""}`;
}

/** Descriptions of the members of a price that are not rates, for the reference. */
export const variantDocs = {
  variants: `Rates that replace the base rates if all conditions of the variant apply. Later variants take precedence, and factors multiply. At most ${maxVariants}.`,
  context_above:
    "Condition: the prompt has more tokens than this, including cached tokens. The rates then apply to all its tokens.",
  served:
    "Condition: the model server reports that it served the request in this tier, speed or region, such as `flex`, `fast` or `us`.",
  from: "Condition: the request begins at this time or later, such as `2026-12-01` or `2026-12-01T08:00:00Z`.",
  hours: "Condition: the request begins in one of these parts of a day (UTC), such as `01:00-04:00`.",
  days: "Condition: the request begins on one of these days of the week (UTC).",
  factor: "Factor for all token rates under these conditions, including the rates of this variant.",
} as const;

/** A variant in the format of the API and headrace.yaml: its conditions, and the rates that apply under them. */
export interface VariantWire extends RatesWire {
  context_above?: number;
  served?: string;
  from?: string;
  hours?: string[];
  days?: (typeof dayNames)[number][];
  factor?: number;
}

export interface PriceWire extends RatesWire {
  input: number;
  output: number;
  variants?: VariantWire[];
}

export function priceFromWire({ variants, ...said }: PriceWire): Price {
  const { input, output } = said;
  return { ...ratesFromWire(said), input, output, ...(variants ? { variants: variants.map(variantFromWire) } : {}) };
}

export function priceToWire({ variants, ...said }: Price): PriceWire {
  const { input, output } = said;
  return { ...ratesToWire(said), input, output, ...(variants ? { variants: variants.map(variantToWire) } : {}) };
}

function ratesFromWire(said: RatesWire): Rates {
  return Object.fromEntries(rates.flatMap(({ name, wire }) => (said[wire] === undefined ? [] : [[name, said[wire]]])));
}

function ratesToWire(said: Rates): RatesWire {
  return Object.fromEntries(rates.flatMap(({ name, wire }) => (said[name] === undefined ? [] : [[wire, said[name]]])));
}

function variantFromWire(said: VariantWire): PriceVariant {
  const { context_above: contextAbove, served, from, hours, days, factor } = said;
  return {
    ...ratesFromWire(said),
    ...(contextAbove === undefined ? {} : { contextAbove }),
    ...(served === undefined ? {} : { served }),
    ...(from === undefined ? {} : { from: Date.parse(from) / 1_000 }),
    ...(hours === undefined ? {} : { hours: hours.map(hoursFromText) }),
    ...(days === undefined ? {} : { days: days.map((day) => dayNames.indexOf(day)) }),
    ...(factor === undefined ? {} : { factor }),
  };
}

function variantToWire(variant: PriceVariant): VariantWire {
  const { contextAbove, served, from, hours, days, factor } = variant;
  return {
    ...(contextAbove === undefined ? {} : { context_above: contextAbove }),
    ...(served === undefined ? {} : { served }),
    ...(from === undefined ? {} : { from: timeText(from) }),
    ...(hours === undefined ? {} : { hours: hours.map(hoursToText) }),
    ...(days === undefined ? {} : { days: days.map((day) => dayNames[day] ?? "sun") }),
    ...(factor === undefined ? {} : { factor }),
    ...ratesToWire(variant),
  };
}

/** Converts a time span such as `01:00-04:00` to minutes from midnight. The text must match `hoursPattern`. */
export function hoursFromText(text: string): { start: number; end: number } {
  const [start = 0, end = 0] = text.split("-").map((time) => {
    const [hour = 0, minute = 0] = time.split(":").map(Number);
    return hour * 60 + minute;
  });
  return { start, end };
}

export function hoursToText({ start, end }: { start: number; end: number }): string {
  return `${clockText(start)}-${clockText(end)}`;
}

function clockText(minutes: number): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

function timeText(seconds: number): string {
  return new Date(seconds * 1_000).toISOString().replace(/(T00:00:00)?\.000Z$/, (_, midnight) => (midnight ? "" : "Z"));
}
