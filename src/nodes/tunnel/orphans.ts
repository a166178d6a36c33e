// Messages for streams that are over: a few are on their way when a stream ends; more are a flood.
import { ProtocolError } from "./messages.ts";

/** The cost of the message itself. */
const messageCost = 64;
/** The allowance for what may be on its way of a stream besides its body: its end, a few credits. */
const streamAllowance = 64 * messageCost;
/** Granted from the start, whichever streams it is spent on. */
const firstAllowance = 64 * 1024;

export class Orphans {
  #allowance = firstAllowance;

  /** A stream is over, of which the other end may have sent so many bytes more. */
  expect(bytes: number): void {
    this.#allowance += bytes + streamAllowance;
  }

  /** One came. Throws a ProtocolError. */
  came(bytes: number): void {
    this.#allowance -= bytes + messageCost;
    if (this.#allowance < 0) throw new ProtocolError("too much came for streams that are over");
  }
}
