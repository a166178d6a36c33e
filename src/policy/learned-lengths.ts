// How long the answers of each model usually are, for requests that do not say how long theirs may be.

/** Tokens, before anything is known of a model. */
const firstGuess = 256;
/** Share of the newest answer in the averages: the last few dozen answers matter. */
const weight = 1 / 16;

interface Lengths {
  mean: number;
  /** Mean distance from the mean. */
  deviation: number;
}

export class LearnedLengths {
  /** By public model id; as many as the catalog ever had. */
  readonly #models = new Map<string, Lengths>();

  /** Tokens that most answers of the model stay within: mean plus mean deviation. At least 1. */
  estimate(modelId: string): number {
    const lengths = this.#models.get(modelId);
    return lengths ? Math.max(1, Math.ceil(lengths.mean + lengths.deviation)) : firstGuess;
  }

  /** One answer that came to its own end. One that a fault or the client cut says nothing of the usual length. */
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
