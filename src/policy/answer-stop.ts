// Ends an answer at the token where a quota that says so is spent: knows how far it may go, and asks for more as it goes.
import type { StopLease, StoppedBy } from "../domain/limits/limits.ts";
import type { Price } from "../domain/models/price.ts";
import type { TokenUsage } from "../domain/usage/usage.ts";
import { nanoUsdOf } from "./price.ts";

/** Tokens that an answer asks for at a time. */
export const blockTokens = 512;
/** With fewer left it asks for the next ones, so that it seldom has to wait for them. */
const refillTokens = 128;
/** Prices are for so many tokens. */
const priced = 1_000_000;

export class AnswerStop {
  /** Tokens of the answer up to which nothing has to be looked at. */
  dueTokens = 0;
  readonly #lease: StopLease;
  readonly #at: number;
  #price: Price | undefined;
  /** There was nothing more to be had: it is asked for once more at the very end of what there is. */
  #isDenied = false;
  /** That was asked at the very end. */
  #isSpent = false;
  #growing: Promise<void> | undefined;

  /** `at`: Unix seconds at which the request began. */
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
   * The most tokens that an answer to such a prompt may have: what was left when it began, or, where it cannot ask for more,
   * what was set aside for it. At least 1; infinite where nothing ends it. `price`: of the model that is to be asked.
   */
  mostTokens(promptTokens: number, price: Price | undefined): number {
    const { mostTokens, mostNanoUsd } = this.#lease;
    const before = { promptTokens, completionTokens: 0, estimated: true };
    return Math.max(1, this.#within(before, mostTokens, mostNanoUsd, price));
  }

  /**
   * Whether the answer may go on, with this much used so far. A promise where that is not known yet: once it resolves, the
   * same is to be asked again.
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
    // Until more is to be asked for; or, where there is none, to the last token.
    this.dueTokens = usage.completionTokens + (this.#isDenied ? remaining : remaining - refillTokens);
    return remaining > 0 ? "goes_on" : "spent";
  }

  /** A promise where another process is asked. */
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

  /** Tokens that may still come with what is set aside. */
  #remainingTokens(usage: TokenUsage): number {
    const { tokens, nanoUsd } = this.#lease;
    return this.#within(usage, tokens, nanoUsd, this.#price) - usage.completionTokens;
  }

  /** How many tokens the answer may have within these amounts, the prompt included. */
  #within(usage: TokenUsage, tokens: number, nanoUsd: number, price: Price | undefined): number {
    const ofTokens = tokens - usage.promptTokens;
    if (nanoUsd === Number.POSITIVE_INFINITY || price === undefined) return ofTokens;
    const ofPrompt = nanoUsdOf({ ...usage, completionTokens: 0 }, price, this.#at) ?? 0;
    const perMillion = this.#costOf(usage, priced, price);
    if (perMillion === 0) return ofTokens;
    return Math.min(ofTokens, Math.floor(((nanoUsd - ofPrompt) / perMillion) * priced));
  }

  /** Nano-USD of so many tokens of the answer, at the rate of its model for it. */
  #costOf({ promptTokens, parts }: TokenUsage, tokens: number, price: Price | undefined): number {
    const cost = (completionTokens: number) =>
      nanoUsdOf({ promptTokens, completionTokens, parts }, price, this.#at) ?? 0;
    return cost(tokens) - cost(0);
  }
}
