// How much of an account's prompts to a model is usually read from a cache: whether what is left of a quota is likely to do.
/** Accounts and models that are remembered, the last that came; of others nothing is expected to be cached. */
const maxKnown = 10_000;
/** Share of the newest prompt in the averages. */
const weight = 1 / 8;

interface Shares {
  mean: number;
  /** Mean distance from the mean. */
  deviation: number;
}

export class LearnedCache {
  readonly #shares = new Map<string, Shares>();

  /** Tokens of a prompt that are likely to be read from a cache: fewer than most of late had. 0 where nothing is known. */
  estimate(accountId: string, modelId: string, promptTokens: number): number {
    const shares = this.#shares.get(`${accountId} ${modelId}`);
    return shares ? Math.floor(promptTokens * Math.max(0, shares.mean - shares.deviation)) : 0;
  }

  learn(accountId: string, modelId: string, promptTokens: number, cachedTokens: number): void {
    const name = `${accountId} ${modelId}`;
    let shares = this.#shares.get(name);
    if (!shares) {
      // Most that is served has no cache, or does not tell.
      if (cachedTokens === 0) return;
      shares = { mean: 0, deviation: 0 };
      if (this.#shares.size >= maxKnown) this.#shares.delete(this.#shares.keys().next().value ?? "");
      this.#shares.set(name, shares);
    }
    const distance = cachedTokens / Math.max(1, promptTokens) - shares.mean;
    shares.mean += weight * distance;
    shares.deviation += weight * (Math.abs(distance) - shares.deviation);
  }
}
