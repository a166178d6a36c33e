// Who declares a model, what it costs and how it does, in words.
import { abilities, abilityNames } from "../../api/models.ts";
import type { ManagedModel } from "../../api/types.ts";
import { rate } from "../../parts/words/figures.ts";
import type { StateKind } from "../../parts/words/state.tsx";

export const sourceNames: Record<ManagedModel["source"], string> = {
  file: "headrace.yaml",
  database: "Declared here",
  upstream: "As its upstream lists it",
};

export const statusNames: Record<ManagedModel["status"], readonly [StateKind, string]> = {
  ok: ["good", "Working"],
  partly: ["warning", "Works in part"],
  down: ["bad", "Not working"],
  nowhere: ["bad", "Runs nowhere"],
};

type PlaceState = ManagedModel["deployments"][number]["state"];

export const placeStates: Record<PlaceState, readonly [StateKind, string]> = {
  ok: ["good", "Working"],
  cooling_down: ["waiting", "Cooling down"],
  draining: ["warning", "Draining"],
  unreachable: ["bad", "Unreachable"],
  missing: ["bad", "No such upstream"],
};

const noPriceText = "No price: spend is not counted";

export function priceText(price: ManagedModel["price"]): string {
  if (!price) return noPriceText;
  const cached = price.cached_input === undefined ? "" : ` (${rate(price.cached_input)} cached)`;
  const more = price.variants?.length ? ", other rates at times" : "";
  return `${rate(price.input)} in${cached}, ${rate(price.output)} out per million tokens${more}`;
}

export function abilityText({ capabilities }: Pick<ManagedModel, "capabilities">): string {
  const known = abilities.filter((use) => capabilities?.[use] !== undefined);
  const texts = known.map((use) => (capabilities?.[use] ? abilityNames[use] : `no ${abilityNames[use].toLowerCase()}`));
  return texts.join(", ") || "Nobody says";
}
