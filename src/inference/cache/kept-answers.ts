// Clears the response cache: for an account, for a model, or completely.
import type { AuditLog } from "../../domain/audit.ts";
import type { ChangeFeed } from "../../domain/change-feed.ts";
import type { AnswerStore, ForgottenAnswers } from "../../domain/models/policies/answer-store.ts";
import type { Principal } from "../../domain/principal.ts";
import { auditEvent, type Origin } from "../../policy/records/audit.ts";
import type { SimilarRequests } from "./similar-requests.ts";

export interface KeptAnswersOptions {
  store: Pick<AnswerStore, "forget">;
  similar: Pick<SimilarRequests, "forget">;
  /** Announces cleared answers, so that the caches of other processes drop them. */
  feed: Pick<ChangeFeed, "announce">;
  audit: Pick<AuditLog, "append">;
}

export class KeptAnswers {
  readonly #options: KeptAnswersOptions;

  constructor(options: KeptAnswersOptions) {
    this.#options = options;
  }

  /** Removes cached answers. Rejects if some cannot be removed now. */
  async forget(principal: Principal, which: ForgottenAnswers, origin: Origin): Promise<void> {
    const { store, similar, feed, audit } = this.#options;
    const { accountId, model } = which;
    const detail = { model: model ?? null };
    // The audit event is written first, so that every removal is recorded.
    await audit.append([
      auditEvent("cache.cleared", principal, origin, { accountId: accountId ?? null, targetId: model ?? null, detail }),
    ]);
    // The entries for similar requests do not record their model. If a model is given, the entries of all accounts are
    // removed.
    similar.forget(model === undefined ? accountId : undefined);
    await store.forget(which);
    feed.announce("answers", model === undefined && accountId !== undefined ? [accountId] : undefined);
  }

  /**
   * Removes the cached answers of accounts that were deleted or that a person has left. Never rejects. If a store
   * cannot be reached now, it is cleared later.
   */
  async forgetAccounts(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    const { store, similar, feed } = this.#options;
    for (const id of ids) similar.forget(id);
    await Promise.allSettled(ids.map((accountId) => store.forget({ accountId })));
    feed.announce("answers", ids);
  }
}
