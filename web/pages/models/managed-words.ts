// Texts for a managed model: its source, price and health.
import { abilities, abilityNames } from "../../api/models.ts";
import type { ManagedModel } from "../../api/types.ts";
import { rate } from "../../parts/words/figures.ts";
import type { StateKind } from "../../parts/words/state.tsx";

export const sourceNames: Record<ManagedModel["source"], string> = {
  file: "headrace.yaml",
  database: "Set in the dashboard",
  upstream: "From the upstream",
};

export const statusNames: Record<ManagedModel["status"], readonly [StateKind, string]> = {
  ok: ["good", "Working"],
  partly: ["warning", "Partly working"],
  down: ["bad", "Not working"],
  nowhere: ["bad", "Not served"],
};

type PlaceState = ManagedModel["deployments"][number]["state"];

export const placeStates: Record<PlaceState, readonly [StateKind, string]> = {
  ok: ["good", "Working"],
  failing: ["bad", "Failing"],
  cooling_down: ["waiting", "Cooling down"],
  draining: ["warning", "Draining"],
  unreachable: ["bad", "Unreachable"],
  missing: ["bad", "Unknown upstream"],
};

const noPriceText = "No price set: usage is not counted as spend";

export function priceText(price: ManagedModel["price"]): string {
  if (!price) return noPriceText;
  const cached = price.cached_input === undefined ? "" : ` (${rate(price.cached_input)} cached)`;
  const more = price.variants?.length ? ", other rates may apply" : "";
  return `${rate(price.input)} in${cached}, ${rate(price.output)} out per million tokens${more}`;
}

export function abilityText({ capabilities }: Pick<ManagedModel, "capabilities">): string {
  const known = abilities.filter((use) => capabilities?.[use] !== undefined);
  const texts = known.map((use) => (capabilities?.[use] ? abilityNames[use] : `no ${abilityNames[use].toLowerCase()}`));
  return texts.join(", ") || "Abilities unknown";
}
