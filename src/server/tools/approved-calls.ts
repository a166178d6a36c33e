// Claims approvals of tool calls, and finds the stored result of a claimed one.
import type { Clock } from "../../base/clock.ts";
import type { ResponseStore } from "../../domain/models/stored-response.ts";
import type { Principal } from "../../domain/principal.ts";
import type { ApprovedCallStore, MadeCall } from "../../domain/tools/approved-call.ts";
import { responseOwnerOf } from "../../http/api/response-owner.ts";
import type { ApprovedCalls, TakenCall } from "../../inference/hosted/model-tools.ts";

/** The time that a claim is kept: longer than clients continue a conversation. */
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

  async take(principal: Principal, approvalId: string, call: MadeCall): Promise<TakenCall | undefined> {
    const { store, responses, clock } = this.#options;
    const now = clock.nowSeconds();
    const taken = await store.take(digestOf(principal, approvalId), call, now + keptSeconds);
    if (!taken) return undefined;
    const { callId, responseId } = taken;
    const items = await responses.items(responseOwnerOf(principal), [callId], now);
    return { responseId, item: items.get(callId) };
  }
}

/**
 * Returns the digest of an approval. Everybody in the account and environment who sees the request may approve it. The
 * client's id may be any text.
 */
function digestOf({ account, environment }: Principal, approvalId: string): string {
  const text = JSON.stringify([account.id, environment, approvalId]);
  return new Bun.CryptoHasher("sha256").update(text).digest("hex");
}
