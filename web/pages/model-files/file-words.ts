// Texts for model files: their states, whether they fit in memory, and their sizes.
import type { PulledModel, PulledModelList } from "../../api/types.ts";
import { bytes, count } from "../../parts/words/figures.ts";
import type { StateKind } from "../../parts/words/state.tsx";

export const filesPath = "/v1/admin/pulled-models";
export type Memory = PulledModelList["memory"];
type Fit = NonNullable<PulledModel["fit"]>;

export const fitWords: Record<Fit, readonly [kind: StateKind, word: string]> = {
  now: ["good", "Fits"],
  evicting: ["good", "Fits after idle models unload"],
  reduced: ["waiting", "Fits with less context"],
  waiting: ["waiting", "Fits after busy models finish"],
  never: ["bad", "Does not fit"],
};

export const useWords: Record<PulledModel["use"], readonly [kind: StateKind, word: string]> = {
  unloaded: ["plain", "On disk"],
  loading: ["waiting", "Loading"],
  loaded: ["good", "In memory"],
  failed: ["bad", "Failed to load"],
};

/** Explains in words why a model fits or not, with the amounts of memory. */
export function whyFits({ memory: need, fit }: PulledModel, memory: Memory): string {
  if (!need) return "Memory need unknown.";
  const { free_bytes: free, evictable_bytes: idle, total_bytes: total, pinned_bytes: pinned } = memory;
  const needs = `Needs ${bytes(need.bytes)}`;
  const most = `pinned models hold ${bytes(pinned)} of ${bytes(total)}`;
  if (fit === "now") return `${needs}; ${bytes(free)} are free.`;
  if (fit === "evicting") return `${needs}; ${bytes(free)} are free, and idle models hold ${bytes(idle)}.`;
  if (fit === "waiting")
    return `${needs}; ${bytes(free + idle)} are free or held by idle models, and busy models hold the rest.`;
  if (fit === "reduced") return `${needs}, or ${bytes(need.least_bytes)} with the shortest context; ${most}.`;
  if (fit === "never") return `Needs at least ${bytes(need.least_bytes)}; ${most}.`;
  return `${needs}: weights ${bytes(need.weights)}, context ${bytes(need.cache)}, compute buffers ${bytes(need.compute)}.`;
}

/** Formats 596 M or 8.03 B, as model vendors do. */
export function parameterWords(parameters: number): string {
  const [size, unit] = parameters < 1e9 ? [parameters / 1e6, "M"] : [parameters / 1e9, "B"];
  return `${Number(size.toPrecision(3))} ${unit} parameters`;
}

export function shapeWords({ context_length: context, parallel }: NonNullable<PulledModel["memory"]>): string {
  return `${count(parallel)} × ${count(context)} tokens`;
}
