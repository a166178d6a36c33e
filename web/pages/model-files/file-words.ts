// What is said of the files of models: their states, whether they fit, and how large they are.
import type { PulledModel, PulledModelList } from "../../api/types.ts";
import { bytes, count } from "../../parts/words/figures.ts";
import type { StateKind } from "../../parts/words/state.tsx";

export const filesPath = "/v1/admin/pulled-models";
export type Memory = PulledModelList["memory"];
type Fit = NonNullable<PulledModel["fit"]>;

export const fitWords: Record<Fit, readonly [kind: StateKind, word: string]> = {
  now: ["good", "Fits"],
  evicting: ["good", "Fits once idle ones leave"],
  reduced: ["waiting", "Fits with less context"],
  waiting: ["waiting", "Fits in its turn"],
  never: ["bad", "Does not fit"],
};

export const useWords: Record<PulledModel["use"], readonly [kind: StateKind, word: string]> = {
  unloaded: ["plain", "On the disk"],
  loading: ["waiting", "Loading"],
  loaded: ["good", "In memory"],
  failed: ["bad", "Did not load"],
};

/** The numbers behind `fit`. */
export function whyFits({ memory: need, fit }: PulledModel, memory: Memory): string {
  if (!need) return "What memory it needs is not known.";
  const { free_bytes: free, evictable_bytes: idle, total_bytes: total, pinned_bytes: pinned } = memory;
  const needs = `It needs ${bytes(need.bytes)}`;
  const most = `of ${bytes(total)}, models that are kept hold ${bytes(pinned)}`;
  if (fit === "now") return `${needs}; ${bytes(free)} are free.`;
  if (fit === "evicting") return `${needs}; ${bytes(free)} are free, and idle models hold ${bytes(idle)}.`;
  if (fit === "waiting")
    return `${needs}; ${bytes(free + idle)} are free or held by idle models, the rest by those that work.`;
  if (fit === "reduced") return `${needs}, and with the shortest context ${bytes(need.least_bytes)}; ${most}.`;
  if (fit === "never") return `At the least it needs ${bytes(need.least_bytes)}; ${most}.`;
  return `${needs}: weights ${bytes(need.weights)}, context ${bytes(need.cache)}, the rest ${bytes(need.compute)}.`;
}

/** 596 M, 8.03 B: as makers of models count. */
export function parameterWords(parameters: number): string {
  const [size, unit] = parameters < 1e9 ? [parameters / 1e6, "M"] : [parameters / 1e9, "B"];
  return `${Number(size.toPrecision(3))} ${unit} parameters`;
}

export function shapeWords({ context_length: context, parallel }: NonNullable<PulledModel["memory"]>): string {
  return `${count(parallel)} × ${count(context)} tokens`;
}
