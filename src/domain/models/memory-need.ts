// The memory that a model needs, and whether the model fits into the machine's memory.

export interface MemoryNeed {
  /** Total bytes; all members are in bytes. */
  bytes: number;
  /** The total with the shortest context that is loaded. */
  minBytes: number;
  weights: number;
  /** The KV cache of all slots. */
  cache: number;
  /** Buffers of one batch, and the process itself. */
  compute: number;
  /** `context`: tokens of one slot; `parallel`: number of slots. `bytes` is computed for both. */
  context: number;
  parallel: number;
}

/** Memory for models in bytes. */
export interface ModelMemory {
  total: number;
  free: number;
  /** Bytes of idle models, which can be unloaded for another model. */
  evictable: number;
  /** Bytes of pinned models, which are never unloaded for others. */
  pinned: number;
}

/** A model with reserved memory. */
export interface HeldMemory {
  id: string;
  bytes: number;
  state: "loading" | "loaded" | "leaving" | "failed";
  /** Number of requests that run on the model or wait for it. */
  inUse: number;
  /** True if the model is never unloaded to make room for others. */
  pinned: boolean;
}

/**
 * `now`; `evicting`: after unloading idle models; `waiting`: once running models have used their minimum time and can
 * be unloaded; `reduced`: with a shorter context or fewer slots; `never`: it does not fit beside pinned models.
 */
export const fits = ["now", "evicting", "waiting", "reduced", "never"] as const;
export type Fit = (typeof fits)[number];

export function fitOf({ bytes, minBytes }: Pick<MemoryNeed, "bytes" | "minBytes">, memory: ModelMemory): Fit {
  const { total, free, evictable, pinned } = memory;
  if (bytes <= free) return "now";
  if (bytes <= free + evictable) return "evicting";
  if (bytes <= total - pinned) return "waiting";
  return minBytes <= total - pinned ? "reduced" : "never";
}
