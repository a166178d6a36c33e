// Amounts of memory by place, in the RAM of this machine and on each GPU, and sums of them.

/**
 * Amounts by pool. `ram` and `gpu0`, `gpu1`, … are in bytes; `group:<name>` is the single place of a group whose
 * members exclude one another. A missing pool counts as zero.
 */
export type Amounts = Readonly<Record<string, number>>;

export const ramPool = "ram";

/** Returns the pool of a GPU by its driver's index. */
export function gpuPool(index: number): string {
  return `gpu${index}`;
}

export function groupPool(name: string): string {
  return `group:${name}`;
}

/** Reports whether the pool is on a GPU, where only one model is loaded at a time. */
export function isGpu(pool: string): boolean {
  return pool.startsWith("gpu");
}

/** Reports whether a pool is counted in bytes. */
export function isMemory(pool: string): boolean {
  return !pool.startsWith("group:");
}

/** Returns the pools with an amount above zero. */
export function poolsOf(amounts: Amounts): string[] {
  return Object.keys(amounts).filter((pool) => amountOf(amounts, pool) > 0);
}

export function amountOf(amounts: Amounts, pool: string): number {
  return Object.hasOwn(amounts, pool) ? (amounts[pool] ?? 0) : 0;
}

export function sum(one: Amounts, other: Amounts): Amounts {
  return combine(one, other, (a, b) => a + b);
}

/** Returns what is left of each pool. An amount is negative if more is taken than there is. */
export function difference(one: Amounts, other: Amounts): Amounts {
  return combine(one, other, (a, b) => a - b);
}

function combine(one: Amounts, other: Amounts, combined: (a: number, b: number) => number): Amounts {
  const pools = new Set([...Object.keys(one), ...Object.keys(other)]);
  return Object.fromEntries([...pools].map((pool) => [pool, combined(amountOf(one, pool), amountOf(other, pool))]));
}
