// Learns how much of an account's prompts to a model is usually read from a cache. The estimate decides whether the
// rest of a quota suffices for a request.
/** Maximum remembered pairs of account and model, the latest ones. For others, no cached tokens are expected. */
const maxKnown = 10_000;
/** Weight of the newest prompt in the averages. */
const weight = 1 / 8;

interface Shares {
  mean: number;
  /** Mean absolute deviation from the mean. */
  deviation: number;
}

export class LearnedCache {
  readonly #shares = new Map<string, Shares>();

  /**
   * Returns a cautious estimate of how many tokens of a prompt will be read from a cache: most recent prompts had more.
   * 0 if nothing is known.
   */
  estimate(accountId: string, modelId: string, promptTokens: number): number {
    const shares = this.#shares.get(`${accountId} ${modelId}`);
    return shares ? Math.floor(promptTokens * Math.max(0, shares.mean - shares.deviation)) : 0;
  }

  learn(accountId: string, modelId: string, promptTokens: number, cachedTokens: number): void {
    const name = `${accountId} ${modelId}`;
    let shares = this.#shares.get(name);
    if (!shares) {
      // Most models have no cache or do not report it.
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
