// Ends an answer at the token that uses up a quota, if that quota may end answers. Computes how far the answer may go,
// and reserves more while the answer grows.
import type { StopLease, StoppedBy } from "../domain/limits/limits.ts";
import type { Price } from "../domain/models/price.ts";
import type { TokenUsage } from "../domain/usage/usage.ts";
import { nanoUsdOf } from "./price.ts";

/** Number of tokens that an answer reserves at a time. */
export const blockTokens = 512;
/** If fewer reserved tokens are left, the answer reserves more, so that it seldom has to wait. */
const refillTokens = 128;
/** Number of tokens that a price refers to. */
const priced = 1_000_000;

export class AnswerStop {
  /** Number of the answer's tokens up to which no check is needed. */
  dueTokens = 0;
  readonly #lease: StopLease;
  readonly #at: number;
  #price: Price | undefined;
  /** True if the store denied more tokens. The reservation is tried once more when all reserved tokens are used. */
  #isDenied = false;
  /** True if the second try was denied as well. */
  #isSpent = false;
  #growing: Promise<void> | undefined;

  /** `at` is the start of the request in Unix seconds. */
  constructor(lease: StopLease, price: Price | undefined, at: number) {
    this.#lease = lease;
    this.#price = price;
    this.#at = at;
  }

  get tightest(): StoppedBy | undefined {
    return this.#lease.tightest;
  }

  servedBy(price: Price | undefined): void {
    this.#price = price;
    this.dueTokens = 0;
  }

  /**
   * Returns the maximum tokens of an answer to this prompt: the amount left at its beginning or, if the answer cannot
   * grow, its reservation. At least 1; infinite if no quota ends the answer. `price` is that of the model that is
   * asked.
   */
  mostTokens(promptTokens: number, price: Price | undefined): number {
    const { mostTokens, mostNanoUsd } = this.#lease;
    const before = { promptTokens, completionTokens: 0, estimated: true };
    return Math.max(1, this.#within(before, mostTokens, mostNanoUsd, price));
  }

  /**
   * Returns whether the answer may continue after this usage. Returns a promise if that is not known yet; call again
   * when the promise resolves.
   */
  check(usage: TokenUsage): "goes_on" | "spent" | Promise<void> {
    let remaining = this.#remainingTokens(usage);
    while (remaining <= refillTokens) {
      const isDue = remaining <= 0;
      if (this.#growing) return isDue ? this.#growing : "goes_on";
      if (isDue ? this.#isSpent : this.#isDenied) break;
      const growing = this.#grow(usage, remaining, isDue);
      if (growing) {
        this.#growing = growing;
        return isDue ? growing : "goes_on";
      }
      remaining = this.#remainingTokens(usage);
    }
    // The next check is due when more must be reserved or, if no more is available, at the last token.
    this.dueTokens = usage.completionTokens + (this.#isDenied ? remaining : remaining - refillTokens);
    return remaining > 0 ? "goes_on" : "spent";
  }

  /** Reserves more tokens. Returns a promise if another process must be asked. */
  #grow(usage: TokenUsage, before: number, isDue: boolean): Promise<void> | undefined {
    const wanted = blockTokens + Math.max(0, -before);
    const onGrown = () => {
      this.#growing = undefined;
      this.#isDenied = this.#remainingTokens(usage) <= before;
      this.#isSpent = isDue && this.#isDenied;
    };
    const growing = this.#lease.grow(wanted, this.#costOf(usage, wanted, this.#price));
    if (growing) return growing.then(onGrown);
    onGrown();
    return undefined;
  }

  /** Returns the tokens that the reservation still covers. */
  #remainingTokens(usage: TokenUsage): number {
    const { tokens, nanoUsd } = this.#lease;
    return this.#within(usage, tokens, nanoUsd, this.#price) - usage.completionTokens;
  }

  /** Returns how many tokens the answer may have within these amounts, which include the prompt. */
  #within(usage: TokenUsage, tokens: number, nanoUsd: number, price: Price | undefined): number {
    const ofTokens = tokens - usage.promptTokens;
    if (nanoUsd === Number.POSITIVE_INFINITY || price === undefined) return ofTokens;
    const ofPrompt = nanoUsdOf({ ...usage, completionTokens: 0 }, price, this.#at) ?? 0;
    const perMillion = this.#costOf(usage, priced, price);
    if (perMillion === 0) return ofTokens;
    return Math.min(ofTokens, Math.floor(((nanoUsd - ofPrompt) / perMillion) * priced));
  }

  /** Returns the nano-USD of this many tokens of the answer, at its model's rate. */
  #costOf({ promptTokens, parts }: TokenUsage, tokens: number, price: Price | undefined): number {
    const cost = (completionTokens: number) =>
      nanoUsdOf({ promptTokens, completionTokens, parts }, price, this.#at) ?? 0;
    return cost(tokens) - cost(0);
  }
}
