// How much memory a model takes, and whether a machine has it.

export interface MemoryNeed {
  /** All of it, in bytes, as everything else here. */
  bytes: number;
  /** With the shortest context that it is loaded with. */
  minBytes: number;
  weights: number;
  /** What attention keeps of the tokens of all places. */
  cache: number;
  /** Buffers of one batch, and the process itself. */
  compute: number;
  /** Tokens of one place, and places, for which `bytes` holds. */
  context: number;
  parallel: number;
}

/** Bytes of memory that models may have. */
export interface ModelMemory {
  total: number;
  free: number;
  /** Held by models that are idle and would leave for another one. */
  evictable: number;
  /** Held by models that never leave for others. */
  pinned: number;
}

/** A model that memory is set aside for. */
export interface HeldMemory {
  id: string;
  bytes: number;
  state: "loading" | "loaded" | "leaving" | "failed";
  /** Requests that are with it, or wait for it. */
  inUse: number;
  /** Kept, whoever else wants its memory. */
  pinned: boolean;
}

/**
 * `now`; `evicting`: once idle models have left; `waiting`: once models that work have had their time; `reduced`: with a
 * shorter context, or fewer places; `never`: it needs more than there is beside what never leaves.
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
