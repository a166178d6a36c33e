// One line of a batch on its way: the same way as that of a live request, but for its place, its price and its charge.
import type { Bytes } from "../../../base/bytes/byte-span.ts";
import type { Holder } from "../../../base/bytes/held-bytes.ts";
import { Cancellation } from "../../../base/cancellation.ts";
import { GatewayError } from "../../../base/errors.ts";
import { Later } from "../../../base/later.ts";
import type { LineUsage } from "../../../domain/batches/batch.ts";
import type { Principal } from "../../../domain/principal.ts";
import type { Ledger, LedgerEntry, UsageBegin, UsageEnd } from "../../../domain/usage/usage.ts";
import type { InferenceAnswer, InferenceCall, InferenceDeps } from "../../../inference/call.ts";
import type { DecodedRequest } from "../../../inference/decoded-request.ts";
import { run } from "../../../inference/run.ts";
import { renderError } from "../../exchange/errors.ts";

export interface LineRequest {
  requestId: string;
  principal: Principal;
  request: DecodedRequest;
  holder: Holder;
}

const begun = new Later<void>();
begun.resolve();

const brokenOff = new DOMException("The line was broken off.", "AbortError");

/** What a batch answers stands in its output, and nowhere else. */
const keepsNothing = {
  chatWriter: { retentionDays: 0, add: () => {}, notStored: () => {}, flush: () => Promise.resolve() },
  responseKeeper: { retentionDays: 0, keep: () => Promise.resolve(), notStored: () => {} },
  // A line that a limit lets wait is refused nothing, however often it asks; what it is refused in the end is in the output.
  refusalCounts: { count: () => {} },
};

export class LineRun implements InferenceCall<string>, Pick<Ledger, "begin"> {
  readonly requestId: string;
  readonly principal: Principal;
  readonly request: DecodedRequest;
  readonly holder: Holder;
  readonly tagHeader = null;
  readonly left = new Cancellation();
  #begin: UsageBegin | undefined;
  #end: UsageEnd | undefined;
  #isWanted = false;
  #hasAsked = false;

  constructor({ requestId, principal, request, holder }: LineRequest) {
    this.requestId = requestId;
    this.principal = principal;
    this.request = request;
    this.holder = holder;
  }

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

  answer(answer: InferenceAnswer): string {
    if (typeof answer === "string") return answer;
    if ("pieces" in answer) return textOf(answer);
    throw new Error("An answer that was to be whole came as a stream.");
  }

  onLimits(): void {}

  onServedBy(): void {}

  onIgnored(): void {}

  onCapped(): void {}

  onLedger(): void {
    this.#hasAsked = true;
  }

  onEnd(): void {}
}

function textOf(bytes: Bytes): string {
  return Buffer.concat(bytes.pieces).toString("utf8");
}
