// Memory by where it is: bytes of this machine's RAM and of each GPU, with what can be worked out from them.

/**
 * Amounts by pool. `ram` and `gpu0`, `gpu1`, … are in bytes; `group:<name>` is the one place of a group whose members
 * exclude one another. A pool that is left out: nothing of it.
 */
export type Amounts = Readonly<Record<string, number>>;

export const ramPool = "ram";

/** The pool of a GPU by the index that its driver gives it. */
export function gpuPool(index: number): string {
  return `gpu${index}`;
}

export function groupPool(name: string): string {
  return `group:${name}`;
}

/** Whether its memory is on a GPU, where one model is loaded at a time. */
export function isGpu(pool: string): boolean {
  return pool.startsWith("gpu");
}

/** Whether it is counted in bytes. */
export function isMemory(pool: string): boolean {
  return !pool.startsWith("group:");
}

/** The pools of which something is asked for. */
export function poolsOf(amounts: Amounts): string[] {
  return Object.keys(amounts).filter((pool) => amountOf(amounts, pool) > 0);
}

export function amountOf(amounts: Amounts, pool: string): number {
  return Object.hasOwn(amounts, pool) ? (amounts[pool] ?? 0) : 0;
}

export function sum(one: Amounts, other: Amounts): Amounts {
  return combine(one, other, (a, b) => a + b);
}

/** What is left of each; less than nothing where more is taken than there is. */
export function difference(one: Amounts, other: Amounts): Amounts {
  return combine(one, other, (a, b) => a - b);
}

function combine(one: Amounts, other: Amounts, combined: (a: number, b: number) => number): Amounts {
  const pools = new Set([...Object.keys(one), ...Object.keys(other)]);
  return Object.fromEntries([...pools].map((pool) => [pool, combined(amountOf(one, pool), amountOf(other, pool))]));
}
