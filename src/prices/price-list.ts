// The prices of public models as their vendors publish them: read from a list that is a part of the program, where it is asked for.
import { readFileSync } from "node:fs";
import { nearest } from "../base/text/nearest.ts";
import type { Price } from "../domain/models/price.ts";
import { type PriceWire, priceFromWire } from "../domain/models/price-text.ts";
import { vendorPricesFile } from "../installation/places.ts";

/** A model at one of those who sell its use; the same model may have another price elsewhere. */
export interface ListedPrice {
  /** `vendor/model`, by which configuration names it. */
  name: string;
  /** Tokens; undefined where the list does not say. */
  context: number | undefined;
  price: PriceWire;
}

export interface PriceList {
  /** Whence it is, with its version. */
  source: string;
  /** The day of which its prices are. */
  date: string;
  vendors: readonly { id: string; name: string; models: number }[];
  prices: readonly ListedPrice[];
}

interface ListFile {
  source: string;
  date: string;
  vendors: { id: string; name: string; models: { id: string; context?: number; price: PriceWire }[] }[];
}

let read: { list: PriceList; byName: ReadonlyMap<string, ListedPrice> } | undefined;
const resolved = new Map<string, Price>();

export function priceList(): PriceList {
  return opened().list;
}

/** The price of `vendor/model`; undefined where the list has none. The same object each time. */
export function listedPrice(name: string): Price | undefined {
  const known = resolved.get(name);
  if (known) return known;
  const found = opened().byName.get(name);
  if (!found) return undefined;
  const price = priceFromWire(found.price);
  resolved.set(name, price);
  return price;
}

/** What is wrong with a name, and the remedy; undefined where the list has it. */
export function listedPriceFault(name: string): { message: string; fix: string } | undefined {
  const { list, byName } = opened();
  if (byName.has(name)) return undefined;
  const near = nearest(name, byName.keys());
  return {
    message: `is no model of the price list of ${list.date}`,
    fix: near === undefined ? "`headrace prices` lists them, as vendor/model." : `Did you mean ${near}?`,
  };
}

/** Those of which each word is a part, in the order of the list; a whole name alone gives that one. */
export function matchingPrices(words: readonly string[]): readonly ListedPrice[] {
  const { list, byName } = opened();
  const exact = words.length === 1 ? byName.get(words[0] ?? "") : undefined;
  if (exact) return [exact];
  const wanted = words.map((word) => word.toLowerCase());
  return list.prices.filter(({ name }) => wanted.every((word) => name.toLowerCase().includes(word)));
}

function opened() {
  if (read) return read;
  const { source, date, vendors } = JSON.parse(readFileSync(vendorPricesFile, "utf8")) as ListFile;
  const prices = vendors.flatMap(({ id: vendor, models }) =>
    models.map(({ id, context, price }) => ({ name: `${vendor}/${id}`, context, price })),
  );
  const list = {
    source,
    date,
    vendors: vendors.map(({ id, name, models }) => ({ id, name, models: models.length })),
    prices,
  };
  read = { list, byName: new Map(prices.map((one) => [one.name, one])) };
  return read;
}
