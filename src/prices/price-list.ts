// Prices of public models as their vendors publish them, from a list in the program that is read on first use.
import { readFileSync } from "node:fs";
import { nearest } from "../base/text/nearest.ts";
import type { Price } from "../domain/models/price.ts";
import { type PriceWire, priceFromWire } from "../domain/models/price-text.ts";
import { vendorPricesFile } from "../installation/paths.ts";

/** A model at one vendor; the same model may have another price at another vendor. */
export interface ListedPrice {
  /** Name `vendor/model`, as the configuration refers to it. */
  name: string;
  /** Context in tokens; undefined if the list has none. */
  context: number | undefined;
  price: PriceWire;
}

export interface PriceList {
  /** Source of the list, with its version. */
  source: string;
  /** Date of the prices. */
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

/** Returns the price of `vendor/model`, the same object each time; undefined if the list has none. */
export function listedPrice(name: string): Price | undefined {
  const known = resolved.get(name);
  if (known) return known;
  const found = opened().byName.get(name);
  if (!found) return undefined;
  const price = priceFromWire(found.price);
  resolved.set(name, price);
  return price;
}

/** Returns why a name is invalid, with a remedy; undefined if the list has the name. */
export function listedPriceFault(name: string): { message: string; fix: string } | undefined {
  const { list, byName } = opened();
  if (byName.has(name)) return undefined;
  const near = nearest(name, byName.keys());
  return {
    message: `is no model of the price list of ${list.date}`,
    fix: near === undefined ? "`headrace prices` lists them, as vendor/model." : `Did you mean ${near}?`,
  };
}

/**
 * Returns the prices whose names contain all words, in the order of the list. A complete name returns only that price.
 */
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
