// Runs one line of a batch like a live request, with batch slots, batch prices and a deferred charge.
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

/** Sends one line as a request. The result or the final error is written only to the output of the batch. */
export class LineRun extends WholeCall implements Pick<Ledger, "begin"> {
  readonly clientGone = new Cancellation();
  #begin: UsageBegin | undefined;
  #end: UsageEnd | undefined;
  #isWanted = false;
  #hasAsked = false;

  /** Resolves with the JSON of the response. Rejects with a GatewayError. */
  async ask(deps: InferenceDeps): Promise<string> {
    const observer = deps.observer && this.#watchedBy(deps.observer);
    return await run(this, { ...deps, ...keepsNothing, observer, ledger: this });
  }

  /** If the runner stopped the line, reports the line as cancelled instead of failed, so that no alert is triggered. */
  #watchedBy(observer: NonNullable<InferenceDeps["observer"]>): NonNullable<InferenceDeps["observer"]> {
    return {
      inferenceBegan: (begin) => observer.inferenceBegan(begin),
      inferenceEnded: (begin, end, course) => {
        const reportedEnd: UsageEnd = this.clientGone.cancelled
          ? { ...end, outcome: "cancelled", errorCode: null }
          : end;
        observer.inferenceEnded(begin, reportedEnd, course);
      },
      inferenceRefused: (refused) => observer.inferenceRefused(refused),
      attempted: (upstream, model, error, cause) => {
        const isOurs = error !== undefined && this.clientGone.cancelled;
        observer.attempted(upstream, model, isOurs ? brokenOff : error, cause);
      },
    };
  }

  /** True if the line was stopped because a live request needed its slot. */
  get gaveWay(): boolean {
    return this.#isWanted;
  }

  /** True if the line has requested a slot. */
  get hasAsked(): boolean {
    return this.#hasAsked;
  }

  /** The usage of the ended line, to be stored with its answer. Undefined if the line never began or has not ended. */
  get usage(): LineUsage | undefined {
    return this.#begin && this.#end && { begin: this.#begin, end: this.#end };
  }

  /** Stops the line for a live request. The partial answer is discarded and not charged. */
  readonly onWanted = (): void => {
    this.#isWanted = true;
    this.stop(new GatewayError("service_unavailable", "A live request wanted the place of this one."));
  };

  stop(reason: GatewayError): void {
    this.clientGone.cancel(reason);
  }

  /** Takes the place of the ledger: keeps the usage until the batch runner stores it with the answer. */
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
