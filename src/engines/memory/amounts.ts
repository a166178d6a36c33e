// Amounts of memory by pool: the RAM of this machine and the memory of each GPU.

/**
 * Amounts by pool. `ram`, `gpu0`, `gpu1`, … are in bytes. `group:<name>` is 1 for a member of a group in which
 * only one model may run. A missing pool counts as zero.
 */
export type Amounts = Readonly<Record<string, number>>;

export const ramPool = "ram";

/** Returns the pool name of a GPU by its driver's index. */
export function gpuPool(index: number): string {
  return `gpu${index}`;
}

export function groupPool(name: string): string {
  return `group:${name}`;
}

/** Reports whether the pool is GPU memory. Only one model loads on a GPU at a time. */
export function isGpu(pool: string): boolean {
  return pool.startsWith("gpu");
}

/** Reports whether the pool's amount is in bytes. */
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

/** Returns the difference for each pool. A difference can be negative. */
export function difference(one: Amounts, other: Amounts): Amounts {
  return combine(one, other, (a, b) => a - b);
}

function combine(one: Amounts, other: Amounts, combined: (a: number, b: number) => number): Amounts {
  const pools = new Set([...Object.keys(one), ...Object.keys(other)]);
  return Object.fromEntries([...pools].map((pool) => [pool, combined(amountOf(one, pool), amountOf(other, pool))]));
}
