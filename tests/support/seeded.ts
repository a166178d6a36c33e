// Random numbers that are the same in each run: a failure can be had again.

/** From 0 up to, and without, 1; a linear congruential generator. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
