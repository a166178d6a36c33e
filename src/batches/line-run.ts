// One line of a batch on its way: the same way as that of a live request, but for its place, its price and its charge.
import { Cancellation } from "../base/cancellation.ts";
import { Deferred } from "../base/deferred.ts";
import { GatewayError } from "../base/errors.ts";
import type { LineUsage } from "../domain/batches/batch.ts";
import type { Ledger, LedgerEntry, UsageBegin, UsageEnd } from "../domain/usage/usage.ts";
import type { InferenceDeps } from "../inference/call.ts";
import { run } from "../inference/run.ts";
import { keepsNothing, WholeCall } from "../inference/whole-call.ts";
import { renderError } from "../wire/errors.ts";

const begun = new Deferred<void>();
begun.resolve();

const brokenOff = new DOMException("The line was broken off.", "AbortError");

/** What it answers stands in the output of its batch, and nowhere else; what it is refused in the end is there as well. */
export class LineRun extends WholeCall implements Pick<Ledger, "begin"> {
  readonly left = new Cancellation();
  #begin: UsageBegin | undefined;
  #end: UsageEnd | undefined;
  #isWanted = false;
  #hasAsked = false;

  /** Resolves with the JSON of the answer; rejects with a GatewayError. */
  async ask(deps: InferenceDeps): Promise<string> {
    const observer = deps.observer && this.#watchedBy(deps.observer);
    return await run(this, { ...deps, ...keepsNothing, observer, ledger: this });
  }

  /** A line that was broken off has not failed: whoever alerts on failures is told that it was cancelled. */
  #watchedBy(observer: NonNullable<InferenceDeps["observer"]>): NonNullable<InferenceDeps["observer"]> {
    return {
      inferenceBegan: (begin) => observer.inferenceBegan(begin),
      inferenceEnded: (begin, end, course) => {
        const told: UsageEnd = this.left.cancelled ? { ...end, outcome: "cancelled", errorCode: null } : end;
        observer.inferenceEnded(begin, told, course);
      },
      inferenceRefused: (refused) => observer.inferenceRefused(refused),
      attempted: (requestId, model, upstream, error) => {
        const isOurs = error !== undefined && this.left.cancelled;
        observer.attempted(requestId, model, upstream, isOurs ? brokenOff : error);
      },
    };
  }

  /** Whether it gave its place to somebody else. */
  get gaveWay(): boolean {
    return this.#isWanted;
  }

  /** Whether it has a place, or waits for one. */
  get hasAsked(): boolean {
    return this.#hasAsked;
  }

  /** What is charged for it, once it has ended: with its answer, as one, and not before. Undefined where it never began. */
  get usage(): LineUsage | undefined {
    return this.#begin && this.#end && { begin: this.#begin, end: this.#end };
  }

  /** Somebody else wants its place: what its model said so far is nobody's, and charged to nobody. */
  readonly onWanted = (): void => {
    this.#isWanted = true;
    this.stop(new GatewayError("service_unavailable", "A live request wanted the place of this one."));
  };

  stop(reason: GatewayError): void {
    this.left.cancel(reason);
  }

  /** In place of the ledger: it is put there once the answer is kept. */
  begin(request: UsageBegin): LedgerEntry {
    this.#begin = request;
    return {
      begun,
      progress: () => {},
      settle: (end) => {
        this.#end = end;
        return begun;
      },
    };
  }

  renderError(error: GatewayError): string {
    return renderError(error);
  }

  override onLedger(): void {
    this.#hasAsked = true;
  }
}
