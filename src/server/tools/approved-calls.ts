// Takes approvals of calls of tools for responses, and says of one that is taken what came of it.
import type { Clock } from "../../base/clock.ts";
import { endOfCall, notCalled } from "../../dialects/response/hosted/hosted-items.ts";
import type { ResponseStore } from "../../domain/models/stored-response.ts";
import type { Principal } from "../../domain/principal.ts";
import type { ApprovedCallStore, MadeCall } from "../../domain/tools/approved-call.ts";
import { responseOwnerOf } from "../../http/api/response-owner.ts";
import type { ApprovedCalls, CallResult } from "../../inference/hosted/model-tools.ts";

/** Longer than anybody comes back to a conversation. */
const keptSeconds = 366 * 86_400;

export interface StoredApprovalsOptions {
  store: Pick<ApprovedCallStore, "take">;
  responses: Pick<ResponseStore, "items">;
  clock: Clock;
}

export class StoredApprovals implements ApprovedCalls {
  readonly #options: StoredApprovalsOptions;

  constructor(options: StoredApprovalsOptions) {
    this.#options = options;
  }

  async take(principal: Principal, approvalId: string, call: MadeCall): Promise<CallResult | undefined> {
    const { store, clock } = this.#options;
    const now = clock.nowSeconds();
    const taken = await store.take(digestOf(principal, approvalId), call, now + keptSeconds);
    return taken && ((await this.#endOf(principal, taken, now)) ?? unknown(taken));
  }

  /** What came of it, where that is kept for this owner: clients ask again where an answer did not reach them. */
  async #endOf(principal: Principal, { callId }: MadeCall, now: number): Promise<CallResult | undefined> {
    const items = await this.#options.responses.items(responseOwnerOf(principal), [callId], now);
    const item = items.get(callId);
    return item && endOfCall(item);
  }
}

/** Of an account and environment, as all who see what was asked may approve it. What clients send as an id may be anything. */
function digestOf({ account, environment }: Principal, approvalId: string): string {
  const text = JSON.stringify([account.id, environment, approvalId]);
  return new Bun.CryptoHasher("sha256").update(text).digest("hex");
}

function unknown({ responseId }: MadeCall): CallResult {
  return notCalled(
    `This call was approved before, and the response ${responseId} began to make it. Whether it was made, and what came of it, is not known here. It is not made again.`,
  );
}
