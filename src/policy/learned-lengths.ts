// Learns how long the answers of each model usually are, for requests without a token limit.

/** Estimated tokens of a model without any answer yet. */
const firstGuess = 256;
/** Weight of the newest answer in the averages, so that the last few dozen answers matter. */
const weight = 1 / 16;

interface Lengths {
  mean: number;
  /** Mean absolute deviation from the mean. */
  deviation: number;
}

export class LearnedLengths {
  /** Lengths by public model id. The map holds every model that the catalog has ever had. */
  readonly #models = new Map<string, Lengths>();

  /** Returns the tokens that most answers of the model do not exceed: mean plus mean deviation. At least 1. */
  estimate(modelId: string): number {
    const lengths = this.#models.get(modelId);
    return lengths ? Math.max(1, Math.ceil(lengths.mean + lengths.deviation)) : firstGuess;
  }

  /**
   * Learns from an answer that the model ended. An answer that an error or the client cut off does not show the usual
   * length.
   */
  learn(modelId: string, completionTokens: number): void {
    let lengths = this.#models.get(modelId);
    if (!lengths) {
      lengths = { mean: firstGuess, deviation: 0 };
      this.#models.set(modelId, lengths);
    }
    const distance = completionTokens - lengths.mean;
    lengths.mean += weight * distance;
    lengths.deviation += weight * (Math.abs(distance) - lengths.deviation);
  }
}
