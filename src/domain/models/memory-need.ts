// The memory that a model needs, and whether the model fits into the machine's memory.

export interface MemoryNeed {
  /** Total memory. All members without another unit are in bytes. */
  bytes: number;
  /** The total if the model is loaded with the shortest allowed context. */
  minBytes: number;
  weights: number;
  /** Memory of the KV cache for all slots. */
  cache: number;
  /** Memory for the buffers of one batch and for the process itself. */
  compute: number;
  /** `context` is the number of tokens of one slot, `parallel` the number of slots. `bytes` applies to both. */
  context: number;
  parallel: number;
}

/** The machine's memory for models, in bytes. */
export interface ModelMemory {
  total: number;
  free: number;
  /** Bytes of idle models, which can be unloaded to make room. */
  evictable: number;
  /** Bytes of pinned models, which are never unloaded to make room. */
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
 * When a model can be loaded. `now`: immediately. `evicting`: after idle models are unloaded. `waiting`: after running
 * models have had their minimum time. `reduced`: only with a shorter context or fewer slots. `never`: not beside the
 * pinned models.
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
