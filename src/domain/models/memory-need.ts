// The memory that a model needs, and whether it fits.

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
  /** Tokens of one slot, and slots, for which `bytes` applies. */
  context: number;
  parallel: number;
}

/** Memory for models in bytes. */
export interface ModelMemory {
  total: number;
  free: number;
  /** Used by idle models, which can be unloaded. */
  evictable: number;
  /** Used by pinned models. */
  pinned: number;
}

/** A model with reserved memory. */
export interface HeldMemory {
  id: string;
  bytes: number;
  state: "loading" | "loaded" | "leaving" | "failed";
  /** Requests that run on it or wait for it. */
  inUse: number;
  /** True if it is never unloaded to make room. */
  pinned: boolean;
}

/**
 * `now`; `evicting`: after unloading idle models; `waiting`: after working models have had their time; `reduced`: with
 * a shorter context or fewer slots; `never`: it does not fit beside pinned models.
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
